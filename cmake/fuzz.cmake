# Every tests/fuzz/fuzz_*.c is a libFuzzer program (clang, preset fuzz):
#   build/fuzz/fuzz_onnx_load tests/fuzz/corpus/onnx_load
# Without clang the corpora are still run, by tests/fuzz/test_*.c.
if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "Fuzzers need clang: cmake --preset fuzz")
endif()
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests
    $<TARGET_PROPERTY:onemodel_objects,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${name} PRIVATE onemodel_static om_warnings)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
# The library is watched too: coverage guides the fuzzer.
target_compile_options(onemodel_objects PRIVATE -fsanitize=fuzzer-no-link)
