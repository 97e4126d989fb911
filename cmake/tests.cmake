# Every tests/<folder>/test_*.c is a program of its own, labelled with its folder. Tests see the
# library's insides.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
if(NOT CMOCKA_FOUND)
  message(STATUS "cmocka is not here: no tests (scripts/setup test installs it)")
  return()
endif()
file(GLOB harness_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/harness/*.c)
file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*/test_*.c)
if(NOT OM_GPU) # tests of the package itself, and what the others ask of it
  list(APPEND harness_sources ${PROJECT_SOURCE_DIR}/tests/harness/no_gpu/om_no_gpu.c)
  foreach(source ${test_sources})
    file(STRINGS ${source} of_package REGEX "^#[ ]*include \"(gpu/|onemodel/gpu.h|.*(gpu_rig|om_hal_fixture).h)")
    if(of_package)
      list(REMOVE_ITEM test_sources ${source})
    endif()
  endforeach()
endif()
if(harness_sources)
  add_library(om_harness STATIC ${harness_sources})
  target_link_libraries(om_harness PUBLIC onemodel_static PkgConfig::CMOCKA PRIVATE om_warnings)
  target_include_directories(om_harness PUBLIC ${PROJECT_SOURCE_DIR}/tests
    $<TARGET_PROPERTY:onemodel_objects,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(om_harness PUBLIC _GNU_SOURCE
    OM_SOURCE_DIR="${PROJECT_SOURCE_DIR}" OM_BINARY_DIR="${PROJECT_BINARY_DIR}"
    $<TARGET_PROPERTY:onemodel_objects,INTERFACE_COMPILE_DEFINITIONS>)
endif()
foreach(source ${test_sources})
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(label ${folder} NAME)
  add_executable(${name} ${source} ${PROJECT_SOURCE_DIR}/tests/harness/om_keep_nothing.c)
  target_link_libraries(${name} PRIVATE om_harness om_warnings)
  if(OM_SANITIZE MATCHES address) # in the program itself: it takes the place of dlclose
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/harness/om_keep_loaded.c)
    target_link_options(${name} PRIVATE -Wl,--export-dynamic-symbol=dlclose)
  endif()
  add_test(NAME ${label}/${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(${label}/${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77)
endforeach()
# Every tests/<folder>/run is a program in another language; it gets the build folder.
file(GLOB test_scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*/run)
if(NOT OM_TOOLS) # they ask the command
  set(test_scripts "")
endif()
foreach(script ${test_scripts})
  get_filename_component(folder ${script} DIRECTORY)
  get_filename_component(label ${folder} NAME)
  add_test(NAME ${label}/run COMMAND ${script} ${PROJECT_BINARY_DIR})
  # A browser's software adapter takes minutes, more beside other work.
  set_tests_properties(${label}/run PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT 2400)
endforeach()
