/* Models written as texts, with bodies: for tests of control flow, sequences and functions.
 *
 *     (c: bool, x: f32[4]) -> y {
 *       t = Relu(x);
 *       y = If(c) then_branch={() -> a { a = Add(x, t); }} else_branch={() -> b { b = Neg(t); }};
 *     }
 *
 * Types: f32 i32 i64 bool str, "seq" and "opt" in front (opt seq f32), "map i64" and "map str"
 * in front of the values' type, none for values that bodies
 * leave undeclared; extents in brackets, -1 or a symbol where they are open, no brackets for a
 * scalar, [?] for any rank. An attribute is an integer, a float (1.5), a text ("a"), a list of one
 * of them ([1, 2]), or a graph. An operator's domain stands before a colon (own:Twice). Behind the
 * graph may stand functions:
 *
 *     function own:Twice (a) -> b { b = Add(a, a); }
 *
 * whose attributes may be $name, the caller's. Failures fail the running cmocka test.
 */
#ifndef OM_MODEL_TEXT_H
#define OM_MODEL_TEXT_H

#include "harness/om_message.h"

/* The model's bytes. */
om_message om_model_text(const char *text, int64_t opset);

/* A session of such a model. */
typedef struct om_text_rig {
  om_message bytes; /* of the model, which reads them where they lie */
  om_model *model;
  om_session *session;
  om_error error;
} om_text_rig;

/* options: NULL for the CPU in exact mode. */
void om_text_rig_open(om_text_rig *rig,
                      const char *text,
                      int64_t opset,
                      const om_session_options *options);
void om_text_rig_close(om_text_rig *rig);

/* The message of the failure to load the model or to make the session, which must have the word. */
void om_text_rig_expect(const char *text, int64_t opset, const char *word);

om_status om_text_rig_run(om_text_rig *rig,
                          const om_named_tensor *inputs,
                          size_t input_count,
                          om_named_tensor *outputs,
                          size_t output_count);

/* How many nodes of that type the CPU runs, for such inputs. */
int om_text_rig_count(om_text_rig *rig,
                      const om_named_tensor *inputs,
                      size_t input_count,
                      const char *op_type);

#endif
