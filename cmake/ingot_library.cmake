# One static library a folder: ingot_library(NAME DEPENDS targets...) compiles every source below ingot/NAME
# (but cli/main.cpp, which is the program's) and makes target ingot_NAME. An empty folder makes no target.
add_library(ingot_options INTERFACE)
target_include_directories(ingot_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(ingot_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror
  $<$<CONFIG:Release>:-fno-math-errno -fno-trapping-math>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
  # The oldest processor the binary runs on; kernels dispatch to wider instructions at run time.
  target_compile_options(ingot_options INTERFACE -march=x86-64-v3)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Its garbage collector begins at 1 GiB instead of 128 MiB: up to a sixth of the time of long sources.
  target_compile_options(ingot_options INTERFACE --param ggc-min-heapsize=1048576)
endif()
if(INGOT_SANITIZE)
  # Undefined behaviour is looked for in the library; checking the tests' own code would cost a third of the build.
  target_compile_options(ingot_options INTERFACE -fsanitize=${INGOT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all $<$<BOOL:$<TARGET_PROPERTY:INGOT_TEST>>:-fno-sanitize=undefined>)
  target_link_options(ingot_options INTERFACE -fsanitize=${INGOT_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Layers that turn bytes into values through pointers. Above them UBSan's checks of every pointer cost half the build
# under sanitizers; ASan finds wrong pointers there, and arithmetic, shifts, bounds, casts and enums are still checked.
set(layers_of_raw_memory base device kernels tensor autograd ops io quant)
# Layers that leave loops over elements to those below compile in two thirds of the time with fewer optimizations.
set(optimization_of_models -O1)
set(optimization_of_cli -Og)

function(ingot_library name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ingot/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "cli/main.cpp$")
  if(NOT sources)
    return()
  endif()
  foreach(dependency IN LISTS arg_DEPENDS)
    if(TARGET ${dependency})
      list(APPEND present ${dependency})
    endif()
  endforeach()
  add_library(ingot_${name} STATIC ${sources})
  if(INGOT_SANITIZE MATCHES "undefined" AND NOT name IN_LIST layers_of_raw_memory)
    target_compile_options(ingot_${name} PRIVATE -fno-sanitize=null,alignment,object-size,vptr)
  endif()
  target_compile_options(ingot_${name} PRIVATE $<$<CONFIG:Release>:${optimization_of_${name}}>)
  ingot_unity(ingot_${name} ${sources})
  target_link_libraries(ingot_${name} PUBLIC ingot_options ${present})
endfunction()
