# The command and the examples. The examples see the public headers alone.
file(GLOB command_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/onemodel/*.c)
if(command_sources)
  add_executable(onemodel ${command_sources})
  target_link_libraries(onemodel PRIVATE onemodel_static om_warnings)
endif()
if(EXISTS ${CMAKE_SOURCE_DIR}/examples/ocr/CMakeLists.txt)
  add_subdirectory(examples/ocr)
endif()
