# The shaders: compiled, validated and embedded. Variants are named in the shader files' heads.
find_program(GLSLC glslc REQUIRED)
find_program(SPIRV_VAL spirv-val REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB_RECURSE shader_files CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/gpu/shaders/*.comp ${PROJECT_SOURCE_DIR}/src/gpu/shaders/*.glsl
  ${PROJECT_SOURCE_DIR}/src/gpu/shaders/*.h ${PROJECT_SOURCE_DIR}/src/gpu/*.def
  ${PROJECT_SOURCE_DIR}/src/gpu/sm90/*.[ch]
  ${PROJECT_SOURCE_DIR}/src/cpu/exact/*.h)
include(cmake/sm90.cmake)
set(embed ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed_shaders.py
          --glslc ${GLSLC} --spirv-val ${SPIRV_VAL} --source ${PROJECT_SOURCE_DIR}/src --out ${OM_GENERATED}
          ${om_ptx_options})
list(APPEND shader_files ${PROJECT_SOURCE_DIR}/tools/embed_shaders.py
     ${PROJECT_SOURCE_DIR}/tools/embed_ptx.py ${PROJECT_SOURCE_DIR}/tools/pack_spirv.py ${PROJECT_SOURCE_DIR}/src/ops/elementwise.def)
if(EMSCRIPTEN) # as WGSL, by way of the same words
  set(om_kernels ${OM_GENERATED}/om_shaders_wgsl.c)
  find_program(NODE node REQUIRED)
  set(tools ${PROJECT_SOURCE_DIR}/tools)
  add_custom_command(
    OUTPUT ${om_kernels} ${OM_GENERATED}/om_shaders.h
    COMMAND ${embed} --define OM_PARAMS_UNIFORM --spirv-dir ${OM_GENERATED}/spirv
    COMMAND ${NODE} ${tools}/wgsl/translate.mjs ${OM_NODE_MODULES} ${OM_GENERATED}/spirv ${OM_GENERATED}/wgsl
    COMMAND ${Python3_EXECUTABLE} ${tools}/embed_wgsl.py --spirv-dir ${OM_GENERATED}/spirv
            --wgsl-dir ${OM_GENERATED}/wgsl --out ${om_kernels}
    DEPENDS ${shader_files} ${tools}/wgsl/translate.mjs ${tools}/embed_wgsl.py
    VERBATIM)
else()
  set(om_kernels ${OM_GENERATED}/om_shaders.c)
  add_custom_command(
    OUTPUT ${om_kernels} ${OM_GENERATED}/om_shaders.h
    COMMAND ${embed}
    DEPENDS ${shader_files}
    VERBATIM)
endif()
