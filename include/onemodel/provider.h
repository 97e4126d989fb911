/* The seam between the core and a device package.
 *
 * The core never names a device package: a program hands the session a provider. This header is
 * for packages that are built with the library's sources (it lends internal types by pointer);
 * programs only pass the pointer on. It is not part of the stable interface.
 *
 * Life of a provider session:
 *
 *     open ─ check (each node, attributes only)
 *       └─ for each set of input shapes:
 *            plan_begin ─ claim (each statically shaped step, in order) ─ compile (all regions)
 *              └─ begin (a region) ─ is_done ... ─ finish, for each region of a run in turn
 *            plan_end
 *     close
 *
 * Threads: the core calls one function of a provider session at a time.
 */
#ifndef ONEMODEL_PROVIDER_H
#define ONEMODEL_PROVIDER_H

#include "onemodel/onemodel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct om_ctx;
struct om_node;
struct om_stored;

typedef struct om_provider_session om_provider_session; /* the package's own */
typedef struct om_provider_plan om_provider_plan;       /* the package's own */

typedef struct om_plan_value { /* a value as the plan knows it */
  const char *name;
  om_tensor tensor;               /* data not NULL: known while planning, never written */
  bool is_static;                 /* type and shape are known; else only the dtype is */
  bool is_weight;                 /* constant data that lives as long as the session: may be
                                     prepared once and found again by its data pointer */
  const struct om_stored *stored; /* not NULL: a weight whose bytes are read through this
                                     (graph/om_stored.h); tensor.data is not to be read */
  bool is_input;                  /* of the graph */
  bool is_output;                 /* of the graph: the caller reads it */
} om_plan_value;

enum { OM_PLAN_NO_VALUE = -1 }; /* as uint32_t: an absent optional operand */

typedef struct om_plan_step {
  const struct om_node *node; /* op and params are set */
  const uint32_t *inputs;     /* indices into values, or (uint32_t)OM_PLAN_NO_VALUE */
  uint32_t input_count;
  const uint32_t *outputs; /* (uint32_t)OM_PLAN_NO_VALUE where nothing reads it */
  uint32_t output_count;
} om_plan_step;

typedef struct om_plan_view { /* stays as it is from plan_begin to plan_end */
  const om_plan_value *values;
  size_t value_count;
  const om_plan_step *steps; /* in an order that respects the data flow */
  size_t step_count;
} om_plan_view;

typedef struct om_plan_region { /* consecutive steps on the device */
  const uint32_t *steps;        /* indices into view->steps, in the order to run */
  size_t step_count;
  const uint32_t *reads; /* values made outside and not constant: uploaded each run */
  size_t read_count;
  const uint32_t *writes; /* values read back: CPU steps, other regions or the caller
                             read them */
  size_t write_count;
} om_plan_region;

struct om_provider {
  size_t struct_bytes;
  const char *name; /* "gpu"; static */

  /* False: the session leaves this rewrite (om_rewrite.name) out. NULL: all are welcome. `options`
   * may be of any build, or wrong: open says so. */
  bool (*wants_rewrite)(const void *options, const char *name);

  /* Opens a device for one session. `options` is om_session_options.provider_options. Meanwhile the
   * session makes its graph ready on another thread, and asks wants_rewrite there. */
  om_status (*open)(struct om_ctx *ctx,
                    const om_provider *self,
                    const void *options,
                    om_mode mode,
                    om_provider_session **out_session);
  void (*close)(struct om_ctx *ctx, om_provider_session *session);

  /* NULL if the node may run here as far as its attributes tell, else the reason: static, a
   * sentence part without a full stop ("no kernel for this operator"). */
  const char *(*check)(om_provider_session *session, const struct om_node *node);

  om_status (*plan_begin)(struct om_ctx *ctx,
                          om_provider_session *session,
                          const om_plan_view *view,
                          om_provider_plan **out_plan);

  /* *out_reason NULL: accepted, and whatever is accepted runs. Else the reason, which lives as
   * long as the plan. A status other than OM_OK is a failure, not a refusal. After OM_E_NOT_READY
   * the other steps are claimed all the same, so that their weights are asked for too, and the plan
   * ends; the next one finds again what was prepared. */
  om_status (*claim)(struct om_ctx *ctx,
                     om_provider_plan *plan,
                     uint32_t step,
                     const char **out_reason);

  /* Gets all regions once. Sets step_is_fused[step] for steps done in another step's pass
   * (cleared by the caller, view->step_count elements). */
  om_status (*compile)(struct om_ctx *ctx,
                       om_provider_plan *plan,
                       const om_plan_region *regions,
                       size_t region_count,
                       bool *step_is_fused);

  /* Starts one region, reads[i] being the data of region->reads[i], which holds until finish. One
   * region of a session at a time. */
  om_status (*begin)(struct om_ctx *ctx,
                     om_provider_plan *plan,
                     size_t region,
                     const void *const *reads);
  /* Whether finish would not wait. */
  om_status (*is_done)(struct om_ctx *ctx,
                       om_provider_plan *plan,
                       size_t region,
                       bool *out_is_done);
  /* Waits for the region and brings its results to writes[i], the memory of region->writes[i]. */
  om_status (*finish)(struct om_ctx *ctx,
                      om_provider_plan *plan,
                      size_t region,
                      void *const *writes);
  /* True where finish cannot wait, as in a browser: it is called only once is_done said so. The
   * function may be NULL: it can. */
  bool (*never_waits)(const om_provider_session *session);

  /* Where the result of a region's write lies after its run, in memory of the provider's that holds
   * until the session's next run; finish is then given NULL for it. Asked before finish and after.
   * NULL: the write needs memory. The function may be NULL: all do. */
  const void *(*lend)(om_provider_plan *plan, size_t region, size_t write);

  void (*plan_end)(struct om_ctx *ctx, om_provider_plan *plan); /* NULL is fine */

  /* Zeroed memory of the provider's, at a multiple of 64, which begin reads without a copy of the
   * host's; a caller's inputs come to lie in it. *out_data NULL: plain memory is as good. Given
   * back before the session is closed, and while no region that reads it is under way. Both NULL:
   * there is none. */
  om_status (*memory_lend)(struct om_ctx *ctx,
                           om_provider_session *session,
                           size_t byte_count,
                           void **out_data);
  void (*memory_return)(struct om_ctx *ctx, om_provider_session *session, void *data);
};

/* The provider session of a session, NULL on the CPU alone. For the package's own queries. */
om_provider_session *om_session_get_provider_session(const om_session *session,
                                                     const om_provider **out_provider);

#ifdef __cplusplus
}
#endif
#endif
