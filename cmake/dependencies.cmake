# Every library Ingot stands on, found as the system installed it.
find_package(PkgConfig REQUIRED)
if(INGOT_FUZZERS)  # one thread: see the header
  add_library(OpenMP::OpenMP_CXX INTERFACE IMPORTED)
  target_include_directories(OpenMP::OpenMP_CXX INTERFACE ${CMAKE_SOURCE_DIR}/tests/fuzz/one_thread)
  target_compile_options(OpenMP::OpenMP_CXX INTERFACE -Wno-unknown-pragmas)
else()
  find_package(OpenMP REQUIRED)
endif()
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(ICU REQUIRED COMPONENTS i18n uc data)
find_package(SQLite3 REQUIRED)
find_package(dnnl REQUIRED)  # oneDNN, version 2 or 3

# An imported library without a CMake package of its own.
function(ingot_import name)
  cmake_parse_arguments(arg "" "PKG" "" ${ARGN})
  pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${arg_PKG})
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE PkgConfig::${name})
endfunction()

ingot_import(ingot_highway PKG libhwy)
ingot_import(ingot_tomlplusplus PKG tomlplusplus)
ingot_import(ingot_xxhash PKG libxxhash)
ingot_import(ingot_pcre2 PKG libpcre2-8)
ingot_import(ingot_simdjson PKG simdjson)
ingot_import(ingot_zlib PKG zlib)
ingot_import(ingot_zstd PKG libzstd)
ingot_import(ingot_sentencepiece PKG sentencepiece)  # with its trainer
ingot_import(ingot_httplib PKG cpp-httplib)

add_library(ingot_onednn INTERFACE)
target_link_libraries(ingot_onednn INTERFACE DNNL::dnnl)
target_include_directories(ingot_onednn SYSTEM INTERFACE $<TARGET_PROPERTY:DNNL::dnnl,INTERFACE_INCLUDE_DIRECTORIES>)
