# The operator tables: a family is a file, found by its name. ops_conv.c defines om_ops_conv,
# gpu_ops_conv.c defines om_gpu_ops_conv; each array ends with an entry whose type is NULL.
#
# OM_LEAVE_OUT names families of operators that a build does without, such as "ml;ml_tree;signal". Models that
# need them are told so. Their files are compiled all the same, since others share some of their functions; the linker
# drops the rest. What has a family on both sides keeps the GPU's: it is never asked.
foreach(family ${OM_LEAVE_OUT})
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/ops/ops_${family}.c)
    message(FATAL_ERROR "OM_LEAVE_OUT: there is no family ${family} (src/ops/ops_${family}.c)")
  endif()
endforeach()
function(om_write_families out prefix folder)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/${prefix}_*.c)
  list(SORT files)
  set(text "/* Generated: one line for each ${folder}/${prefix}_<family>.c. */\n")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^${prefix}_" "" family ${name})
    if(prefix STREQUAL "ops" AND family IN_LIST OM_LEAVE_OUT)
      continue()
    endif()
    string(APPEND text "OM_FAMILY(${family})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${OM_GENERATED}/${out} CONTENT "${text}" @ONLY)
endfunction()
om_write_families(om_op_families.def ops ops)
om_write_families(om_gpu_op_families.def gpu_ops gpu)
