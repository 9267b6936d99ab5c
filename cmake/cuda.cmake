# Compiles kernels for GPUs, without enable_language(CUDA), which links a program while it configures: a toolkit made of
# PyPI's wheels can only compile.
set(ANABRANCH_CUDA "" CACHE PATH "folder of a CUDA toolkit, 13 or later; empty: looks in PATH, /usr/local/cuda, build/cuda")
set(ANABRANCH_CUDA_ARCHITECTURE "90" CACHE STRING "the oldest GPUs: ten times their compute capability")
get_filename_component(ab_cuda_root ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)

# Sets ANABRANCH_NVCC, ANABRANCH_CUDA_INCLUDE and ANABRANCH_CUDART; else ANABRANCH_NVCC_MISSING says where it was looked
# for.
macro(ab_find_nvcc)
  set(ANABRANCH_NVCC)
  set(ANABRANCH_NVCC_MISSING)
  find_program(ab_nvcc_in_path nvcc NO_CACHE)
  set(ab_places ${ANABRANCH_CUDA}/bin/nvcc)
  if(NOT ANABRANCH_CUDA)
    set(ab_places ${ab_nvcc_in_path} /usr/local/cuda/bin/nvcc ${ab_cuda_root}/build/cuda/bin/nvcc)
  endif()
  foreach(nvcc IN LISTS ab_places)
    if(NOT ANABRANCH_NVCC)
      ab_try_nvcc(${nvcc})
    endif()
  endforeach()
endmacro()

macro(ab_try_nvcc nvcc)
  set(ab_version)
  if(EXISTS ${nvcc})
    execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE ab_version ERROR_QUIET)
  endif()
  get_filename_component(ab_toolkit ${nvcc} REALPATH)
  get_filename_component(ab_toolkit ${ab_toolkit}/../.. ABSOLUTE)
  find_library(ab_cudart cudart_static PATHS ${ab_toolkit}/lib64 ${ab_toolkit}/lib NO_DEFAULT_PATH NO_CACHE)
  if(NOT ab_version MATCHES "release ([0-9]+)\\.([0-9]+)")
    string(APPEND ANABRANCH_NVCC_MISSING " ${nvcc} (not there)")
  elseif(CMAKE_MATCH_1 LESS 13)
    string(APPEND ANABRANCH_NVCC_MISSING " ${nvcc} (${CMAKE_MATCH_1}.${CMAKE_MATCH_2})")
  elseif(NOT ab_cudart)
    string(APPEND ANABRANCH_NVCC_MISSING " ${nvcc} (without libcudart_static.a)")
  else()
    set(ANABRANCH_NVCC ${nvcc})
    set(ANABRANCH_CUDA_INCLUDE ${ab_toolkit}/include)
    set(ANABRANCH_CUDART ${ab_cudart})
  endif()
  unset(ab_cudart)
endmacro()

# -fmad=false: a product and a sum that become one instruction are rounded once, where a compiler sees fit. So the bits of
# an operator would depend on the kernel that it is a part of.
function(ab_cuda_options variable)
  set(${variable} -std=c++20 -arch=sm_${ANABRANCH_CUDA_ARCHITECTURE} -O3 -fmad=false --expt-relaxed-constexpr -DNDEBUG
                  -DCCCL_DISABLE_NVTX -DAB_CUDA_OLDEST=${ANABRANCH_CUDA_ARCHITECTURE} -I${ab_cuda_root}/src PARENT_SCOPE)
endfunction()

# ab_cuda_text(<file.cu> <file.ptx>): compiles functions to text, which kernels are made of while a program runs.
function(ab_cuda_text source text)
  ab_cuda_options(options)
  add_custom_command(
    OUTPUT ${text}
    COMMAND ${ANABRANCH_NVCC} ${options} -rdc=true -MD -MF ${text}.d -ptx ${source} -o ${text}
    DEPENDS ${source} DEPFILE ${text}.d
    COMMENT "Compiling ${source} to PTX" VERBATIM)
endfunction()

# ab_cuda_kernels(<variable> <file.cu>...): compiles them; the variable gets the object files.
# --compress-mode=size: a seventh of the size, unpacked by the driver when a kernel is first used.
function(ab_cuda_kernels variable)
  ab_cuda_options(options)
  list(APPEND options --compress-mode=size -Xcompiler=-fPIC,-Wall,-Wextra,-fvisibility=hidden)
  set(launcher)
  if(ANABRANCH_CCACHE)
    set(launcher env CCACHE_BASEDIR=${ab_cuda_root} ${ANABRANCH_CCACHE})
  endif()
  set(objects)
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH name ${ab_cuda_root} ${source})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/kernels/${name}.o)
    get_filename_component(folder ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${launcher} ${ANABRANCH_NVCC} ${options} -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d
      COMMENT "Compiling ${name} for GPUs" VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
