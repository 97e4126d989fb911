# A clang that makes PTX, for the kernels in src/gpu/sm90: Debian's does. Without one they are left out.
set(om_ptx_options "")
if(OM_SM90 AND OM_VULKAN AND NOT EMSCRIPTEN)
  find_program(OM_PTX_CLANG NAMES clang clang-21 clang-20 clang-19 clang-18 DOC "A clang that makes PTX")
  if(OM_PTX_CLANG)
    file(WRITE ${PROJECT_BINARY_DIR}/ptx_trial.c "__attribute__((nvptx_kernel)) void trial(void) {}\n")
    execute_process(
      COMMAND ${OM_PTX_CLANG} --target=nvptx64-nvidia-cuda -Xclang -target-cpu -Xclang sm_90a
              -Xclang -target-feature -Xclang +ptx83 -S ${PROJECT_BINARY_DIR}/ptx_trial.c
              -o ${PROJECT_BINARY_DIR}/ptx_trial.ptx
      RESULT_VARIABLE ptx_trial OUTPUT_QUIET ERROR_QUIET)
    if(ptx_trial EQUAL 0)
      set(om_ptx_options --clang ${OM_PTX_CLANG})
    endif()
  endif()
  if(NOT om_ptx_options)
    message(STATUS "no clang that makes PTX: the kernels for Hopper are left out")
  endif()
endif()
