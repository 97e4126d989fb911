# The package for a browser: onemodel.wasm with its loader, and what JavaScript programs import.
set(web ${CMAKE_CURRENT_LIST_DIR})
set(package ${PROJECT_BINARY_DIR}/package)
# A function that JavaScript calls has no header; the texts are one long literal.
set_source_files_properties(${web}/exports.c PROPERTIES COMPILE_OPTIONS "-Wno-missing-prototypes")
set(page_side ${PROJECT_SOURCE_DIR}/src/gpu/hal/webgpu/om_webgpu.js)
set(reader_side ${web}/om_web_reader.js)
function(add_module name)
  add_executable(${name} ${web}/exports.c)
  target_link_libraries(${name} PRIVATE onemodel_static om_warnings)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(${name} PRIVATE -matomics -mbulk-memory)
  set_target_properties(${name} PROPERTIES
    SUFFIX .mjs RUNTIME_OUTPUT_DIRECTORY ${package} LINK_DEPENDS "${page_side};${reader_side}")
  # -O2: at -O3 emscripten 3.1.69 loses the imports of a program whose objects may be shared.
  target_link_options(${name} PRIVATE
    -O2 "SHELL:--js-library ${page_side}" "SHELL:--js-library ${reader_side}" --no-entry
    -sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=web,worker,node -sFILESYSTEM=0
    -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sSTACK_SIZE=1MB
    -sEXPORTED_FUNCTIONS=_malloc,_free
    -sEXPORTED_RUNTIME_METHODS=HEAPU8,HEAPU32,HEAPF64,UTF8ToString,stringToUTF8,lengthBytesUTF8 ${ARGN})
endfunction()
add_module(onemodel_wasm)
# For a page that may share memory. Its workers are loaded while the page goes on; loops do without those that are not
# there yet (src/base/om_thread_pool.c).
add_module(onemodel_wasm_threads -pthread -sPTHREAD_POOL_DELAY_LOAD -Wno-pthreads-mem-growth
  "-sPTHREAD_POOL_SIZE=Math.min(globalThis.navigator?.hardwareConcurrency??1,16)-1")
# Its workers load the same file, whatever a bundler has called it by then.
set(threads ${package}/onemodel_wasm_threads.mjs)
add_custom_command(TARGET onemodel_wasm_threads POST_BUILD
  COMMAND sed -i "s|new Worker(new URL(\"onemodel_wasm_threads.mjs\",import.meta.url),|new Worker(import.meta.url,|" ${threads}
  COMMAND grep -q "new Worker(import.meta.url," ${threads} VERBATIM)
add_custom_target(onemodel_package ALL
  COMMAND ${CMAKE_COMMAND} -E copy_if_different ${web}/package.json ${web}/onemodel.mjs ${web}/onemodel.d.ts ${package}
  DEPENDS onemodel_wasm onemodel_wasm_threads ${web}/package.json ${web}/onemodel.mjs ${web}/onemodel.d.ts)

# The example's page finds boxes by the same code as examples/ocr.
set_source_files_properties(${PROJECT_SOURCE_DIR}/examples/web/boxes.c PROPERTIES COMPILE_OPTIONS "-Wno-missing-prototypes")
add_executable(example_boxes ${PROJECT_SOURCE_DIR}/examples/web/boxes.c ${PROJECT_SOURCE_DIR}/examples/ocr/boxes.c)
target_include_directories(example_boxes PRIVATE ${PROJECT_SOURCE_DIR}/examples)
target_link_libraries(example_boxes PRIVATE om_warnings)
set_target_properties(example_boxes PROPERTIES
  OUTPUT_NAME boxes SUFFIX .mjs RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/example)
target_link_options(example_boxes PRIVATE --no-entry
  -sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=web -sFILESYSTEM=0 -sSINGLE_FILE -sALLOW_MEMORY_GROWTH
  -sEXPORTED_FUNCTIONS=_malloc,_free -sEXPORTED_RUNTIME_METHODS=HEAPF32,HEAPU32)
