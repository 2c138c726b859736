# ingot_unity(TARGET sources...): with INGOT_UNITY, compiles the sources of a target several at once.
#
# A whole build is then faster; building again after an edit takes longer, and a file can see the local names
# of its neighbours. So it is for builds from nothing (scripts/demo.sh, scripts/test.sh), not for work on the code.
option(INGOT_UNITY "compile several sources at once: faster from nothing, slower after an edit" OFF)
if(INGOT_UNITY)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

function(ingot_unity target)
  if(NOT INGOT_UNITY)
    return()
  endif()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/unity_groups.py ${ARGN}
                  OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" ";" lines "${groups}")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([0-9]+) (.+)$" matched "${line}")
    set_source_files_properties("${CMAKE_MATCH_2}" PROPERTIES UNITY_GROUP ${target}_${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
