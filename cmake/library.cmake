# The library: every .c file in src/ belongs to it; no file is named here.
file(GLOB_RECURSE core_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/base/*.c ${PROJECT_SOURCE_DIR}/src/graph/*.c
  ${PROJECT_SOURCE_DIR}/src/onnx/*.c ${PROJECT_SOURCE_DIR}/src/cpu/*.c
  ${PROJECT_SOURCE_DIR}/src/ops/*.c ${PROJECT_SOURCE_DIR}/src/rewrite/*.c
  ${PROJECT_SOURCE_DIR}/src/session/*.c)
set(definitions "")
set(dependency_folders "")
# Fast kernels: multiplications and additions may become one, and tiles are unrolled in every build.
file(GLOB fast_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cpu/fast/*.c)
set_source_files_properties(${fast_sources} PROPERTIES COMPILE_OPTIONS "-ffp-contract=fast")
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cpu/fast/om_tile.c PROPERTIES
  COMPILE_OPTIONS "-ffp-contract=fast;-O3")
# What runs when a session is made, or beside a device, is made small: loops over elements are elsewhere.
file(GLOB small_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/graph/*.c ${PROJECT_SOURCE_DIR}/src/onnx/*.c
  ${PROJECT_SOURCE_DIR}/src/rewrite/*.c ${PROJECT_SOURCE_DIR}/src/session/*.c)
set_source_files_properties(${small_sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>")
# Operators' rules, and entries that call what is in src/cpu. Those of quantized ones have loops of their own.
file(GLOB rule_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/*.c)
list(FILTER rule_sources EXCLUDE REGEX "/ops_q[^/]*$")
set_source_files_properties(${rule_sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>")
set(sources ${core_sources} ${OM_GENERATED}/onnx.pb.c)

if(OM_GPU)
  file(GLOB gpu_sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/src/gpu/*.c ${PROJECT_SOURCE_DIR}/src/gpu/hal/*.c
    ${PROJECT_SOURCE_DIR}/src/gpu/hal/null/*.c)
  set_source_files_properties(${gpu_sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/gpu/om_gpu_split.c PROPERTIES COMPILE_OPTIONS "") # it has loops
  if(OM_VULKAN)
    file(GLOB vulkan_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/gpu/hal/vulkan/*.c)
    list(APPEND gpu_sources ${vulkan_sources})
    list(APPEND definitions OM_WITH_VULKAN)
    # volk loads what Vulkan has in four ways, one of which is used: the linker drops the others.
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/gpu/hal/vulkan/om_vk_loader.c PROPERTIES
      COMPILE_OPTIONS "-ffunction-sections;-fdata-sections")
    find_path(VOLK_INCLUDE_DIR volk.h PATHS /usr/include NO_DEFAULT_PATH REQUIRED)
    list(APPEND dependency_folders ${VOLK_INCLUDE_DIR})
  endif()
  if(EMSCRIPTEN)
    file(GLOB webgpu_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/gpu/hal/webgpu/*.c)
    list(APPEND gpu_sources ${webgpu_sources})
    list(REMOVE_ITEM gpu_sources ${PROJECT_SOURCE_DIR}/src/gpu/om_gpu_trim.c)
    list(REMOVE_ITEM gpu_sources ${PROJECT_SOURCE_DIR}/src/gpu/hal/om_hal_code.c)
    list(APPEND definitions OM_WITH_WEBGPU)
  else()
    find_path(LZMA_INCLUDE_DIR lzma.h REQUIRED)
    find_library(LZMA_LIBRARY lzma REQUIRED)
    list(APPEND dependency_folders ${LZMA_INCLUDE_DIR})
    list(REMOVE_ITEM gpu_sources ${PROJECT_SOURCE_DIR}/src/gpu/om_gpu_trim_wgsl.c)
  endif()
  include(cmake/shaders.cmake)  # the kernels' texts: om_shaders.h and ${om_kernels}
  list(APPEND sources ${gpu_sources} ${om_kernels})
endif()

if(OM_PCRE2)
  find_path(PCRE2_INCLUDE_DIR pcre2.h REQUIRED)
  find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
  list(APPEND dependency_folders ${PCRE2_INCLUDE_DIR})
  list(APPEND definitions OM_WITH_PCRE2)
endif()

add_library(onemodel_objects OBJECT ${sources} ${OM_GENERATED}/onnx.pb.h)
target_include_directories(onemodel_objects PUBLIC
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/gpu/shaders
  ${OM_GENERATED})
# Where configuring found them, which need not be where the compiler looks.
target_include_directories(onemodel_objects SYSTEM PUBLIC ${NANOPB_INCLUDE_DIR}
  PRIVATE ${dependency_folders})
target_compile_definitions(onemodel_objects PUBLIC ${definitions} PRIVATE OM_BUILDING _GNU_SOURCE)
target_link_libraries(onemodel_objects PRIVATE om_warnings)
if(NOT OM_SANITIZE)
  target_compile_options(onemodel_objects PRIVATE -Wframe-larger-than=1024)
endif()
if(OM_LEAVE_OUT)
  # A family that no table names is dropped by the linker, but for what others use of it.
  target_compile_options(onemodel_objects PRIVATE -ffunction-sections -fdata-sections)
endif()
if(OM_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  # The frames by which GCC finds a use after return are not aligned for vectors of 64 bytes.
  set_source_files_properties(src/cpu/fast/om_tile.c src/cpu/exact/om_product_group.c
    PROPERTIES COMPILE_OPTIONS --param=asan-use-after-return=0)
endif()
if(EMSCRIPTEN)
  # Linked twice, with threads and without: objects that may be shared serve both.
  target_compile_options(onemodel_objects PRIVATE -msimd128 -matomics -mbulk-memory)
  # 64-bit sizes that were checked against memory become size_t, which has 32 bits there.
  target_compile_options(om_warnings INTERFACE
    -Wno-shorten-64-to-32 -Wno-tautological-constant-out-of-range-compare)
  set_source_files_properties(${om_kernels} PROPERTIES COMPILE_OPTIONS "-Wno-overlength-strings")
endif()
set_source_files_properties(${OM_GENERATED}/onnx.pb.c PROPERTIES COMPILE_OPTIONS "-w")

set(om_link_libraries ${NANOPB_LIBRARY} m)
if(OM_PCRE2)
  list(APPEND om_link_libraries ${PCRE2_LIBRARY})
endif()
if(OM_GPU AND NOT EMSCRIPTEN)
  list(APPEND om_link_libraries ${LZMA_LIBRARY})
endif()
find_package(Threads REQUIRED)
list(APPEND om_link_libraries Threads::Threads ${CMAKE_DL_LIBS})

set(kinds SHARED STATIC)
if(EMSCRIPTEN)
  set(kinds STATIC)
endif()
foreach(kind ${kinds})
  string(TOLOWER onemodel_${kind} target)
  add_library(${target} ${kind} $<TARGET_OBJECTS:onemodel_objects>)
  string(REPLACE _ :: name ${target})
  add_library(${name} ALIAS ${target}) # as find_package has it
  set_target_properties(${target} PROPERTIES OUTPUT_NAME onemodel
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
endforeach()
target_link_libraries(onemodel_static PUBLIC ${om_link_libraries})
if(OM_VULKAN AND NOT APPLE)
  # volk's entry points have the names of the Vulkan loader's functions; a program linked with both
  # would call through ours. Only om_vk_loader.c uses them, so they can stay in it.
  add_custom_command(TARGET onemodel_static POST_BUILD COMMAND ${CMAKE_OBJCOPY}
    --wildcard --localize-symbol=vk* --localize-symbol=volk* $<TARGET_FILE:onemodel_static> VERBATIM)
endif()
if(TARGET onemodel_shared)
  target_link_libraries(onemodel_shared PRIVATE ${om_link_libraries})
endif()
# What comes from static libraries (nanopb) stays inside; exported is what OM_API marks. Tables of pointers
# need a word for each 63 of them instead of 24 bytes for each, with linkers and C libraries since 2022.
include(CheckLinkerFlag)
include(CheckSourceCompiles)
check_linker_flag(C -Wl,-z,pack-relative-relocs OM_HAS_RELR)
check_source_compiles(C "
  #include <features.h>
  #if !__GLIBC_PREREQ(2, 36)
  #  error \"what loads the library would not understand them\"
  #endif
  int main(void) { return 0; }" OM_LOADS_RELR)
if(OM_HAS_RELR AND OM_LOADS_RELR AND TARGET onemodel_shared)
  target_link_options(onemodel_shared PRIVATE -Wl,-z,pack-relative-relocs)
endif()
if(UNIX AND NOT APPLE AND TARGET onemodel_shared)
  target_link_options(onemodel_shared PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
endif()
