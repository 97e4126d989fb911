# The shaders: compiled, validated and embedded. Variants are named in the shader files' heads.
find_program(GLSLC glslc REQUIRED)
find_program(SPIRV_VAL spirv-val REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB_RECURSE shader_files CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/src/gpu/shaders/*.comp ${CMAKE_SOURCE_DIR}/src/gpu/shaders/*.glsl
  ${CMAKE_SOURCE_DIR}/src/gpu/shaders/*.h ${CMAKE_SOURCE_DIR}/src/gpu/*.def
  ${CMAKE_SOURCE_DIR}/src/cpu/exact/*.h)
add_custom_command(
  OUTPUT ${OM_GENERATED}/om_shaders.c ${OM_GENERATED}/om_shaders.h
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed_shaders.py
          --glslc ${GLSLC} --spirv-val ${SPIRV_VAL}
          --source ${CMAKE_SOURCE_DIR}/src --out ${OM_GENERATED}
  DEPENDS ${shader_files} ${CMAKE_SOURCE_DIR}/tools/embed_shaders.py
          ${CMAKE_SOURCE_DIR}/tools/pack_spirv.py ${CMAKE_SOURCE_DIR}/src/ops/elementwise.def
  VERBATIM)
