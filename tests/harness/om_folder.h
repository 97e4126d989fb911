/* Test folders in the layout of the ONNX backend suite:
 *
 *     model.onnx
 *     test_data_set_0/input_0.pb ...   TensorProto, in the order of the model's inputs
 *     test_data_set_0/output_0.pb ...  an output without a file is not compared
 *     test_data_set_1/...
 */
#ifndef OM_FOLDER_H
#define OM_FOLDER_H

#include "harness/om_test_compare.h"
#include "onnx/om_file_map.h"

enum { OM_FOLDER_SETS = 8 };

typedef struct om_folder_set {
  om_named_tensor *inputs; /* in the pool */
  size_t input_count;
  om_tensor **expected; /* an element for each output; NULL: not compared */
} om_folder_set;

typedef struct om_folder {
  om_pool pool;      /* owned, with what the sets point to */
  om_file_map *maps; /* owned: the data files */
  size_t map_count, map_capacity;
  om_model *model; /* owned */
  const om_model_info *info;
  om_folder_set sets[OM_FOLDER_SETS];
  size_t set_count;
} om_folder;

/* Results of all sets: results[set * output_count + output], in the folder's pool. */
typedef om_tensor *om_folder_results;

/* Loads the model with options (NULL: none), then the data. On failure nothing is left open. */
om_status om_folder_open(om_ctx *ctx,
                         const char *path,
                         const om_model_options *options,
                         om_folder *out_folder);
void om_folder_close(om_ctx *ctx, om_folder *folder);

/* Makes constants of the small tensors behind the first input, as exporters have them: the suite
 * gives shapes, axes, bounds, weights and the like as inputs. Where there are several sets of data
 * nothing changes. *out_did_change: there are such inputs. */
om_status om_folder_fix_inputs(om_ctx *ctx, om_folder *folder, bool *out_did_change);

typedef struct om_folder_places { /* nodes in the last set's plan */
  size_t on_cpu, on_device;
} om_folder_places;

/* Makes a session and runs every set (a model without data: once, without inputs). */
om_status om_folder_run(om_ctx *ctx,
                        om_folder *folder,
                        const om_session_options *options,
                        om_folder_results *out_results,
                        om_folder_places *out_places);

/* OM_E_INTERNAL with the place where a result is not |got - right| <= atol + rtol * |right|.
 * Types, shapes, strings and places of NaN must be equal. */
om_status om_folder_check(
    om_ctx *ctx, const om_folder *folder, om_folder_results results, double rtol, double atol);

/* OM_E_INTERNAL with the place where the bits of two runs differ. */
om_status om_folder_same(om_ctx *ctx,
                         const om_folder *folder,
                         om_folder_results a,
                         om_folder_results b);

/* True if the path is there. */
bool om_path_exists(const char *path);

#endif
