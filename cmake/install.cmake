# What `cmake --install` puts in place: libraries, headers, the command, a pkg-config file and a
# CMake package (targets onemodel::shared and onemodel::static).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(onemodel_shared PROPERTIES EXPORT_NAME shared)
set_target_properties(onemodel_static PROPERTIES EXPORT_NAME static)
install(TARGETS onemodel_shared onemodel_static EXPORT onemodel_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(om_public_headers onemodel.h provider.h)
if(OM_GPU)
  list(APPEND om_public_headers gpu.h)
endif()
list(TRANSFORM om_public_headers PREPEND ${PROJECT_SOURCE_DIR}/include/onemodel/)
install(FILES ${om_public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/onemodel)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET onemodel)
  install(TARGETS onemodel RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/onemodel)
install(EXPORT onemodel_targets NAMESPACE onemodel:: DESTINATION ${package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/onemodel-config.cmake.in
  ${OM_GENERATED}/onemodel-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${OM_GENERATED}/onemodel-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${OM_GENERATED}/onemodel-config.cmake ${OM_GENERATED}/onemodel-config-version.cmake
  DESTINATION ${package_folder})

# What a program needs beside the static library.
set(OM_PC_PRIVATE "-lprotobuf-nanopb -lm -pthread")
if(OM_PCRE2)
  string(APPEND OM_PC_PRIVATE " -lpcre2-8")
endif()
if(OM_GPU)
  string(APPEND OM_PC_PRIVATE " -llzma")
endif()
if(CMAKE_DL_LIBS)
  string(APPEND OM_PC_PRIVATE " -l${CMAKE_DL_LIBS}")
endif()
file(RELATIVE_PATH OM_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" OM_PC_UP "${OM_PC_UP}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/onemodel.pc.in ${OM_GENERATED}/onemodel.pc @ONLY)
install(FILES ${OM_GENERATED}/onemodel.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
