# The command and the examples. The examples see the public headers alone; the command also the
# library's float16 and TensorProto readers.
file(GLOB command_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/onemodel/*.c)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
add_executable(onemodel ${command_sources})
target_include_directories(onemodel PRIVATE
  $<TARGET_PROPERTY:onemodel_objects,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(onemodel PRIVATE _GNU_SOURCE)
target_link_libraries(onemodel PRIVATE onemodel_static om_warnings PkgConfig::LIBZIP)
add_subdirectory(examples)
