#include "tests/support/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using nlohmann::json;

// Appends the leaves of nested lists in row-major order, checking them against `shape`.
void flatten(const json& value, const Shape& shape, int64_t depth, std::vector<double>& out,
             bool& integers) {
  if (depth < shape.rank()) {
    check(value.is_array() && static_cast<int64_t>(value.size()) == shape[depth], ErrorKind::format,
          "oracle: lists of unequal length at depth ", depth, " of shape ", shape);
    for (const json& part : value) {
      flatten(part, shape, depth + 1, out, integers);
    }
    return;
  }
  check(!value.is_array(), ErrorKind::format, "oracle: a list among the numbers of shape ", shape);
  integers = integers && (value.is_number_integer() || value.is_boolean());
  out.push_back(number_from(value));
}

Shape shape_of(const json& value) {
  Shape shape;
  for (const json* at = &value; at->is_array(); at = &at->front()) {
    shape.push_back(static_cast<int64_t>(at->size()));
    if (at->empty()) {
      break;
    }
  }
  return shape;
}

}  // namespace

double number_from(const json& value) {
  if (value.is_boolean()) {
    return value.get<bool>() ? 1 : 0;
  }
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    const double infinity = std::numeric_limits<double>::infinity();
    check(text == "NaN" || text == "Infinity" || text == "-Infinity", ErrorKind::format,
          "oracle: not a number: \"", text, "\"");
    return text == "NaN" ? std::nan("") : (text == "Infinity" ? infinity : -infinity);
  }
  check(value.is_number(), ErrorKind::format, "oracle: not a number: ", value.dump());
  return value.get<double>();
}

Tensor tensor_from(const json& value) {
  const Shape shape = shape_of(value);
  std::vector<double> numbers;
  bool integers = true;
  flatten(value, shape, 0, numbers, integers);
  const Tensor wide = tensor_of(numbers, shape);
  return integers ? converted(wide, DType::i64) : wide;
}

Tensor Oracle::input(const std::string& name, DType dtype) const {
  check(inputs.contains(name), ErrorKind::format, "oracle ", file, ": no input named ", name);
  const Tensor x = tensor_from(inputs.at(name));
  return is_float(x.dtype()) ? converted(x, dtype) : x;
}

double Oracle::setting(const std::string& name) const {
  check(hyper.contains(name), ErrorKind::format, "oracle ", file, ": no setting named ", name);
  return number_from(hyper.at(name));
}

double Oracle::setting(const std::string& name, double otherwise) const {
  return hyper.contains(name) ? number_from(hyper.at(name)) : otherwise;
}

std::string Oracle::word(const std::string& name) const { return hyper.value(name, std::string()); }

double Oracle::limit(const std::string& entry, DType dtype) const {
  if (tolerance.at("rule") == "exact") {
    return 0;
  }
  const double usual = number_from(tolerance.at(dtype == DType::f64 ? "f64" : "f32"));
  if (!tolerance.contains("looser") || !tolerance.at("looser").contains(entry)) {
    return usual;
  }
  return std::max(usual, number_from(tolerance.at("looser").at(entry)));
}

Oracle read_oracle(const std::filesystem::path& path) {
  std::ifstream file(path);
  check(file.good(), ErrorKind::io, "oracle: cannot read ", path.string());
  const json all = json::parse(file, nullptr, false);
  check(all.is_object() && all.contains("method"), ErrorKind::format,
        "oracle: not an oracle: ", path.string());
  Oracle oracle;
  oracle.file = path.stem().string();
  oracle.method = all.at("method").get<std::string>();
  oracle.hyper = all.value("hyper", json::object());
  oracle.inputs = all.value("inputs", json::object());
  oracle.expected = all.at("expected");
  oracle.tolerance = all.at("tolerance");
  return oracle;
}

std::vector<std::filesystem::path> oracle_files(std::string_view folder) {
  std::vector<std::filesystem::path> found;
  const std::filesystem::path root = oracle_folder() / folder;
  if (std::filesystem::is_directory(root)) {
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
      if (entry.path().extension() == ".json") {
        found.push_back(entry.path());
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

double normwise_error(const Tensor& got, const Tensor& expected) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!got.defined() || got.shape() != expected.shape()) {
    return infinity;
  }
  const Tensor wide_got = dense(converted(got, DType::f64));
  const Tensor wide_expected = dense(converted(expected, DType::f64));
  const auto a = wide_got.values<double>();
  const auto b = wide_expected.values<double>();
  double most = 0;
  double scale = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i]) && std::isfinite(b[i])) {
      most = std::max(most, std::abs(a[i] - b[i]));
      scale = std::max(scale, std::abs(b[i]));
    } else if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) {
      return infinity;
    }
  }
  return scale > 0 ? most / scale : most;
}

void expect_entry(const Oracle& oracle, const std::string& entry, const Tensor& got, DType dtype) {
  ASSERT_TRUE(oracle.expected.contains(entry)) << oracle.file << ": expects nothing for " << entry;
  const Tensor expected = tensor_from(oracle.expected.at(entry));
  const double limit = is_float(expected.dtype()) ? oracle.limit(entry, dtype) : 0;
  EXPECT_LE(normwise_error(got, expected), limit)
      << oracle.file << ": " << entry << " in " << name(dtype);
}

void expect_entry(const Oracle& oracle, const std::string& entry, const Tensor& got) {
  expect_entry(oracle, entry, got, got.defined() ? got.dtype() : DType::f64);
}

}  // namespace ingot::testing
