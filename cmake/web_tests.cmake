# The operators' tests as one WebAssembly program, for the WebGPU backend: every tests/ops/test_*.c that is a table
# of cases. tests/web/run runs it in Node and in a browser.
file(GLOB op_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/ops/test_*.c)
file(GLOB harness_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/harness/om_test_*.c)
list(APPEND harness_sources ${PROJECT_SOURCE_DIR}/tests/harness/om_fault.c
     ${PROJECT_SOURCE_DIR}/tests/harness/om_keep_nothing.c)
foreach(source ${harness_sources})
  file(STRINGS ${source} is_for_cmocka REGEX "cmocka.h")
  if(is_for_cmocka)
    list(REMOVE_ITEM harness_sources ${source})
  endif()
endforeach()
set(table "")
foreach(source ${op_tests})
  file(STRINGS ${source} is_table REGEX "^OM_OP_TEST")
  if(NOT is_table)
    list(REMOVE_ITEM op_tests ${source})
    continue()
  endif()
  get_filename_component(name ${source} NAME_WE)
  string(APPEND table "OM_OP_TEST_PROGRAM(${name})\n")
  # Each is a program elsewhere: here its main is a function of its name.
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS main=om_main_${name}
    COMPILE_OPTIONS "-Wno-missing-prototypes")
endforeach()
file(CONFIGURE OUTPUT ${OM_GENERATED}/om_op_test_programs.def CONTENT "${table}" @ONLY)
add_executable(onemodel_op_tests ${PROJECT_SOURCE_DIR}/tests/web/op_tests.c ${op_tests} ${harness_sources})
target_link_libraries(onemodel_op_tests PRIVATE onemodel_static om_warnings)
target_include_directories(onemodel_op_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests
  $<TARGET_PROPERTY:onemodel_objects,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(onemodel_op_tests PRIVATE _GNU_SOURCE
  OM_SOURCE_DIR="${PROJECT_SOURCE_DIR}" OM_BINARY_DIR="${PROJECT_BINARY_DIR}"
  $<TARGET_PROPERTY:onemodel_objects,INTERFACE_COMPILE_DEFINITIONS>)
set_target_properties(onemodel_op_tests PROPERTIES SUFFIX .mjs RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/op_tests)
target_compile_options(onemodel_op_tests PRIVATE -matomics -mbulk-memory)
# Tests are written to wait: ASYNCIFY lets a wait give way to the page.
target_link_options(onemodel_op_tests PRIVATE -O2
  "SHELL:--js-library ${PROJECT_SOURCE_DIR}/src/gpu/hal/webgpu/om_webgpu.js"
  "SHELL:--js-library ${PROJECT_SOURCE_DIR}/tests/web/op_tests.js"
  -sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=web,node -sFILESYSTEM=0 -sASYNCIFY
  -sASYNCIFY_STACK_SIZE=262144 -sASYNCIFY_IMPORTS=om_web_test_prepare,om_web_test_give_way
  -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sSTACK_SIZE=2MB)
