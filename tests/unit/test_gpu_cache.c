/* The file of kernels, on the null backend: it keeps a number for each kernel. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/om_fault.h"
#include "unit/gpu_rig.h"

enum { HEADER_BYTES = 104, NUMBER_BYTES = 8, FILE_BYTES = 4096, MOST_ALLOCATIONS = 500 };

static const int64_t four[] = {4};
static gpu_rig the_rig, another_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static char folder[64]; /* of this test */
static int refusals, complaints;

static void count_lines(void *user, om_log_level level, const char *message) {
  (void)user;
  if (strstr(message, "of no use")) ++refusals;
  if (strstr(message, "not kept")) ++complaints;
  assert_int_equal(level, OM_LOG_INFO);
}

/* ---- Sessions ---- */

static void open_in(gpu_rig *r, const char *where) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = "null";
  options.cache_folder = where;
  rig_init(r);
  r->ctx.log = (om_log){count_lines, NULL};
  rig_check(
      r, om_gpu_provider()->open(&r->ctx, om_gpu_provider(), &options, OM_MODE_FAST, &r->session));
}

/* A plan of these operators, each in a kernel of its own (they are not fused: each is read). */
static void compile(gpu_rig *r, const char *const *types, size_t count) {
  uint32_t writes[RIG_STEPS];
  uint32_t x = rig_input(r, 1, four);
  for (size_t i = 0; i < count; ++i) writes[i] = rig_unary(r, types[i], x);
  rig_compile(r, writes, count);
}

/* A session's life with one plan: how often it wrote the file. */
static uint64_t live(const char *where, const char *const *types, size_t count) {
  open_in(rig, where);
  compile(rig, types, count);
  uint64_t writes = rig->session->info.cache_writes;
  rig_close(rig);
  return writes;
}

static const char *const relu[] = {"Relu"};
static const char *const both[] = {"Relu", "Exp"};
static const char *const several[] = {"Relu", "Exp", "Abs", "Neg", "Tanh", "Sqrt"};

/* ---- The folder ---- */

static const char *file_path(void) {
  static char path[200];
  static const char zeros[] = "00000000000000000000000000000000";
  snprintf(path, sizeof path, "%s/%s-%s.kernels", folder, zeros, zeros);
  return path;
}

static size_t read_file(char *data) {
  FILE *file = fopen(file_path(), "rb");
  if (!file) return 0;
  size_t bytes = fread(data, 1, FILE_BYTES, file);
  fclose(file);
  return bytes;
}

static void write_file(const char *data, size_t bytes) {
  FILE *file = fopen(file_path(), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, bytes, file), bytes);
  assert_int_equal(fclose(file), 0);
}

static size_t count_files(void) {
  size_t count = 0;
  DIR *list = opendir(folder);
  if (!list) return 0;
  for (struct dirent *entry; (entry = readdir(list)) != NULL;) count += entry->d_name[0] != '.';
  closedir(list);
  return count;
}

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/onemodel-test-XXXXXX");
  refusals = complaints = 0;
  return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state) {
  (void)state;
  (void)unlink(file_path()); /* some tests make a folder of it, or nothing */
  (void)rmdir(file_path());
  return rmdir(folder);
}

/* ---- Tests ---- */

static void test_a_second_session_finds_all(void **state) {
  struct stat before, after;
  (void)state;
  assert_int_equal(live(folder, both, 2), 1);
  assert_int_equal(stat(file_path(), &before), 0);
  assert_int_equal(before.st_mode & 0777, 0600);
  assert_int_equal(before.st_size, HEADER_BYTES + 2 * NUMBER_BYTES);
  assert_int_equal(live(folder, both, 2), 0);
  assert_int_equal(live(folder, relu, 1), 0);
  assert_int_equal(stat(file_path(), &after), 0);
  assert_int_equal(before.st_ino, after.st_ino);
  assert_int_equal(count_files(), 1);
  assert_int_equal(refusals + complaints, 0);
}

static void test_new_kernels_are_added(void **state) {
  char data[FILE_BYTES];
  (void)state;
  assert_int_equal(live(folder, relu, 1), 1);
  assert_int_equal(live(folder, both, 2), 1);
  assert_int_equal(read_file(data), HEADER_BYTES + 2 * NUMBER_BYTES);
  assert_int_equal(live(folder, relu, 1), 0);
}

/* Two sessions that were open before either wrote. */
static void test_sessions_add_to_each_other(void **state) {
  static const char *const others[] = {"Abs", "Exp"};
  char data[FILE_BYTES];
  (void)state;
  open_in(rig, folder);
  open_in(&another_rig, folder);
  compile(rig, relu, 1);
  compile(&another_rig, others, 2);
  rig_close(rig);
  rig_close(&another_rig);
  assert_int_equal(read_file(data), HEADER_BYTES + 3 * NUMBER_BYTES);
  assert_int_equal(live(folder, both, 2), 0);
}

/* Each save of all comes when another session has made one more kernel since it was asked. */
static int made_meanwhile;

static om_status save_late(om_ctx *ctx, om_hal_device *device, void *data, size_t *bytes) {
  const uint64_t number = 1000 + (uint64_t)made_meanwhile;
  if (data && made_meanwhile > 0) {
    --made_meanwhile;
    OM_TRY(om_hal_null.cache_load(ctx, device, &number, sizeof number));
  }
  return om_hal_null.cache_save(ctx, device, data, bytes);
}

static void test_others_make_kernels_meanwhile(void **state) {
  om_hal late = om_hal_null;
  char data[FILE_BYTES];
  (void)state;
  late.cache_save = save_late;
  open_in(rig, folder);
  rig->session->hal = &late;
  made_meanwhile = 3;
  compile(rig, relu, 1);
  assert_int_equal(made_meanwhile, 0);
  assert_int_equal(read_file(data), HEADER_BYTES + 4 * NUMBER_BYTES);
  assert_int_equal(refusals + complaints, 0);
  rig->session->hal = &om_hal_null;
  rig_close(rig);
  assert_int_equal(live(folder, both, 2), 1); /* it keeps on */
}

/* A file of another device, driver, build or word size differs in the header. */
static void test_one_flipped_bit_is_a_miss(void **state) {
  char data[FILE_BYTES], broken[FILE_BYTES];
  (void)state;
  assert_int_equal(live(folder, both, 2), 1);
  size_t bytes = read_file(data);
  for (size_t i = 0; i < bytes; ++i) {
    memcpy(broken, data, bytes);
    broken[i] = (char)(broken[i] ^ 1 << i % 8);
    write_file(broken, bytes);
    assert_int_equal(live(folder, both, 2), 1);
    assert_int_equal(read_file(broken), bytes);
    assert_memory_equal(data, broken, bytes);
  }
  assert_int_equal(refusals, 2 * bytes); /* when it is opened, and before it is replaced */
}

static void test_a_cut_or_lengthened_file_is_a_miss(void **state) {
  char data[FILE_BYTES] = {0}, found[FILE_BYTES];
  (void)state;
  assert_int_equal(live(folder, both, 2), 1);
  size_t bytes = read_file(data);
  for (size_t cut = 0; cut <= bytes + NUMBER_BYTES; ++cut) {
    if (cut == bytes) continue;
    write_file(data, cut);
    assert_int_equal(live(folder, both, 2), 1);
    assert_int_equal(read_file(found), bytes);
    assert_memory_equal(data, found, bytes);
  }
}

static void test_what_is_no_file_is_left(void **state) {
  (void)state;
  assert_int_equal(mkdir(file_path(), 0700), 0);
  assert_int_equal(live(folder, both, 2), 0);
  assert_int_equal(complaints, 1);
  assert_int_equal(count_files(), 1);
}

static void test_a_folder_that_cannot_be_made(void **state) {
  char below[256];
  (void)state;
  write_file("", 0);
  snprintf(below, sizeof below, "%s/deeper", file_path());
  assert_int_equal(live(below, both, 2), 0);
  assert_int_equal(complaints, 1);
  assert_int_equal(count_files(), 1);
}

static void test_a_missing_folder_is_made(void **state) {
  char missing[100];
  struct stat info;
  (void)state;
  assert_int_equal(rmdir(folder), 0);
  snprintf(missing, sizeof missing, "%s", folder);
  assert_int_equal(live(missing, both, 2), 1);
  assert_int_equal(stat(missing, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
}

static void test_where_the_file_is(void **state) {
  (void)state;
  assert_int_equal(live("", relu, 1), 0);
  assert_int_equal(live(NULL, relu, 1), 0); /* the harness sets the variable to "" */
  assert_int_equal(count_files(), 0);
  assert_int_equal(setenv("ONEMODEL_GPU_CACHE", folder, 1), 0);
  assert_int_equal(live("", relu, 1), 0);
  assert_int_equal(live(NULL, relu, 1), 1);
  assert_int_equal(count_files(), 1);
  assert_int_equal(setenv("ONEMODEL_GPU_CACHE", "", 1), 0);
}

/* Processes that write and read at once, each its own operators. */
static void work(int number) {
  for (int i = 0; i < 40; ++i) {
    uint64_t writes = live(folder, several + (number + i) % 5, 2);
    if (writes > 1 || refusals + complaints > 0) _exit(1);
    if (i % 8 == number) (void)unlink(file_path()); /* so that there is something to write */
  }
  _exit(0);
}

static void test_processes_at_once(void **state) {
  enum { COUNT = 4 };
  pid_t children[COUNT];
  (void)state;
  for (int i = 0; i < COUNT; ++i) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i] == 0) work(i);
  }
  for (int i = 0; i < COUNT; ++i) {
    int code = -1;
    assert_int_equal(waitpid(children[i], &code, 0), children[i]);
    assert_int_equal(code, 0);
  }
  assert_true(live(folder, several, 6) <= 1);
  assert_int_equal(live(folder, several, 6), 0);
  assert_int_equal(refusals + complaints, 0);
  assert_int_equal(count_files(), 1);
}

/* ---- Failures ---- */

static om_status plan_once(om_gpu_options *options) {
  const om_provider *provider = om_gpu_provider();
  const char *reason = NULL;
  static uint32_t out;
  OM_TRY(provider->open(&rig->ctx, provider, options, OM_MODE_FAST, &rig->session));
  uint32_t x = rig_input(rig, 1, four);
  out = rig_unary(rig, "Relu", x);
  rig->region = (om_plan_region){rig->region_steps, 1, rig->reads, 1, &out, 1};
  OM_TRY(provider->plan_begin(&rig->ctx, rig->session, &rig->view, &rig->plan));
  OM_TRY(provider->claim(&rig->ctx, rig->plan, 0, &reason));
  return provider->compile(&rig->ctx, rig->plan, &rig->region, 1, rig->is_fused);
}

/* One life whose allocation `fail_at` fails; false: it has no more allocations. */
static bool fails_once(size_t fail_at) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  om_fault fault = {.fail_at = fail_at};
  options.backend = "null";
  options.cache_folder = folder;
  rig_init(rig);
  rig->ctx.allocator = om_fault_allocator(&fault);
  om_status st = plan_once(&options);
  assert_int_equal(st, om_fault_has_failed(&fault) ? OM_E_OUT_OF_MEMORY : OM_OK);
  rig_end_plan(rig);
  om_gpu_provider()->close(&rig->ctx, rig->session);
  assert_int_equal(om_fault_live_blocks(&fault), 0);
  assert_int_equal(fault.damaged_blocks, 0);
  return om_fault_has_failed(&fault);
}

static void test_every_allocation_fails_once(void **state) {
  size_t fail_at = 0;
  (void)state;
  do {
    assert_int_equal(live(folder, several + 1, 2), 1); /* a file without Relu */
    if (!fails_once(fail_at)) break;
    (void)unlink(file_path());
  } while (++fail_at < MOST_ALLOCATIONS);
  assert_true(fail_at > 10 && fail_at < MOST_ALLOCATIONS);
  assert_int_equal(count_files(), 1);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(test_a_second_session_finds_all),
      IN_FOLDER(test_new_kernels_are_added),
      IN_FOLDER(test_sessions_add_to_each_other),
      IN_FOLDER(test_others_make_kernels_meanwhile),
      IN_FOLDER(test_one_flipped_bit_is_a_miss),
      IN_FOLDER(test_a_cut_or_lengthened_file_is_a_miss),
      IN_FOLDER(test_what_is_no_file_is_left),
      IN_FOLDER(test_a_folder_that_cannot_be_made),
      IN_FOLDER(test_a_missing_folder_is_made),
      IN_FOLDER(test_where_the_file_is),
      IN_FOLDER(test_processes_at_once),
      IN_FOLDER(test_every_allocation_fails_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
