#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/base/json_library.h"
#include "ingot/tensor/tensor.h"

namespace ingot::testing {

// One file of reference values made by another program; tests/oracle/README.md states the format.
struct Oracle {
  std::string file;    // without folder and extension: "adamw"
  std::string method;  // the variant's name
  nlohmann::json hyper, inputs, expected, tolerance;

  // An input as a tensor: floating-point in `dtype`, integers in i64.
  Tensor input(const std::string& name, DType dtype) const;
  double setting(const std::string& name) const;  // a number of `hyper`
  double setting(const std::string& name, double otherwise) const;
  std::string word(const std::string& name) const;  // a string of `hyper`; "" if absent

  // Largest allowed max |got − expected| / max |expected| of an entry computed in `dtype` (f64 or
  // f32); 0 under the rule "exact".
  double limit(const std::string& entry, DType dtype) const;
};

Oracle read_oracle(const std::filesystem::path& path);
// All *.json of a folder below oracle_folder() ("methods/losses"), by name; empty without it.
std::vector<std::filesystem::path> oracle_files(std::string_view folder);

// Nested lists (or one value) as a dense tensor: i64 if all leaves are integers or booleans, f64
// otherwise. "NaN", "Infinity" and "-Infinity" are numbers. Throws Error(format) on ragged lists.
Tensor tensor_from(const nlohmann::json& value);
double number_from(const nlohmann::json& value);

// max |got − expected| / max |expected| (absolute if that is 0), both in f64; infinite where the
// shapes differ, or where one is NaN or infinite and the other is not the same.
double normwise_error(const Tensor& got, const Tensor& expected);

// Expects that `got` is the oracle's expected[entry] within its limit for got's dtype; `dtype` is
// the working precision where got is kept wider than it was computed.
void expect_entry(const Oracle& oracle, const std::string& entry, const Tensor& got, DType dtype);
void expect_entry(const Oracle& oracle, const std::string& entry, const Tensor& got);

}  // namespace ingot::testing
