# The wire format's decoder, made from our own schema (src/onnx/onnx.proto).
if(EMSCRIPTEN) # no system's library fits: its sources, which bindings/web/build fetches
  set(NANOPB_INCLUDE_DIR ${OM_NANOPB_SOURCE})
  set(NANOPB_LIBRARY protobuf-nanopb)
  add_library(protobuf-nanopb STATIC ${OM_NANOPB_SOURCE}/pb_common.c ${OM_NANOPB_SOURCE}/pb_decode.c)
  target_compile_options(protobuf-nanopb PRIVATE -matomics -mbulk-memory)
else()
  find_path(NANOPB_INCLUDE_DIR pb_decode.h PATH_SUFFIXES nanopb REQUIRED)
  find_library(NANOPB_LIBRARY protobuf-nanopb REQUIRED)
endif()
find_program(NANOPB_GENERATOR NAMES nanopb_generator nanopb_generator.py REQUIRED)

set(OM_GENERATED ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${OM_GENERATED})
add_custom_command(
  OUTPUT ${OM_GENERATED}/onnx.pb.c ${OM_GENERATED}/onnx.pb.h
  COMMAND ${NANOPB_GENERATOR} --quiet --strip-path --output-dir=${OM_GENERATED}
          --proto-path=${PROJECT_SOURCE_DIR}/src/onnx onnx.proto
  DEPENDS src/onnx/onnx.proto src/onnx/onnx.options
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/src/onnx
  VERBATIM)
