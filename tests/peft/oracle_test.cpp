// Adapters against the files of methods/peft: every file is run by its form, so that further files
// of a form need no code. Merging of whole models is no adapter and left out.
#include "tests/support/oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <map>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/peft/dora.h"
#include "ingot/peft/ia3.h"
#include "ingot/peft/low_rank.h"
#include "ingot/quant/nf4.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using namespace peft;

LoraOptions options_of(const Oracle& oracle) {
  LoraOptions out;
  out.rank = static_cast<int64_t>(oracle.setting("rank"));
  out.alpha = oracle.setting("alpha");
  out.rslora = oracle.hyper.value("rslora", false);
  return out;
}

// A map with the fixture's weight and bias.
std::unique_ptr<nn::Linear> map_of(const Oracle& oracle, DType dtype) {
  const Tensor w = oracle.input("W", dtype);
  auto map = std::make_unique<nn::Linear>(w.size(1), w.size(0), nn::Bias::yes, dtype, cpu_device);
  copy_into(map->weight, w);
  copy_into(map->bias, oracle.input("bias", dtype));
  return map;
}

// y = map(x) within the adapter, and the gradients of Σ upstream · y.
struct Result {
  Tensor y, dx;
};
Result run(const Oracle& oracle, nn::Linear& map, std::shared_ptr<const nn::LinearAdapter> adapter,
           DType dtype) {
  map.adapters = {std::move(adapter)};
  Tensor x = copy_of(oracle.input("x", dtype));
  require_grad(x);
  const Tensor y = map(x);
  backward(sum(y * oracle.input("upstream", dtype)));
  return {detach(y), grad(x)};
}

// A half of the results is not in every file: what there is, is compared.
void expect_present(const Oracle& oracle, const std::map<std::string, Tensor>& got, DType dtype) {
  for (const auto& [entry, value] : oracle.expected.items()) {
    const auto at = got.find(entry);
    ASSERT_NE(at, got.end()) << oracle.file << ": nothing computed for " << entry;
    expect_entry(oracle, entry, at->second, dtype);
  }
}

const auto always = std::make_shared<AdapterState>();

void lora(const Oracle& oracle, DType dtype) {
  const auto map = map_of(oracle, dtype);
  const auto adapter =
      std::make_shared<Lora>(*map, options_of(oracle), AdapterSeed{}, dtype, cpu_device, always);
  copy_into(adapter->a, oracle.input("A", dtype));
  copy_into(adapter->b, oracle.input("B", dtype));
  require_grad(adapter->a);
  require_grad(adapter->b);
  const Result found = run(oracle, *map, adapter, dtype);
  expect_present(oracle,
                 {{"scaling", scalar(adapter->scaling(), DType::f64)},
                  {"y", found.y},
                  {"grad_x", found.dx},
                  {"grad_A", grad(adapter->a)},
                  {"grad_B", grad(adapter->b)},
                  {"merged_W", detach(adapter->merged({map->weight, map->bias}).weight)}},
                 dtype);
}

void dora(const Oracle& oracle, DType dtype) {
  const auto map = map_of(oracle, dtype);
  const auto adapter =
      std::make_shared<Dora>(*map, options_of(oracle), AdapterSeed{}, dtype, cpu_device, always,
                             oracle.word("norm_gradient") == "full");
  const Tensor initial = copy_of(adapter->magnitude);
  copy_into(adapter->a, oracle.input("A", dtype));
  copy_into(adapter->b, oracle.input("B", dtype));
  copy_into(adapter->magnitude, oracle.input("m", dtype));
  for (Tensor* p : {&adapter->a, &adapter->b, &adapter->magnitude}) {
    require_grad(*p);
  }
  const Result found = run(oracle, *map, adapter, dtype);
  expect_present(oracle,
                 {{"initial_m", initial},
                  {"weight_norm", detach(adapter->norms(*map))},
                  {"y", found.y},
                  {"grad_x", found.dx},
                  {"grad_A", grad(adapter->a)},
                  {"grad_B", grad(adapter->b)},
                  {"grad_m", grad(adapter->magnitude)},
                  {"merged_W", detach(adapter->merged({map->weight, map->bias}).weight)}},
                 dtype);
}

void ia3(const Oracle& oracle, DType dtype) {
  const auto map = map_of(oracle, dtype);
  const bool input = oracle.hyper.at("feedforward").get<bool>();
  const auto adapter = std::make_shared<Ia3>(*map, input ? Ia3::Scales::input : Ia3::Scales::output,
                                             dtype, cpu_device, always);
  copy_into(adapter->factors, oracle.input("l", dtype));
  require_grad(adapter->factors);
  const Result found = run(oracle, *map, adapter, dtype);
  const auto merged = adapter->merged({map->weight, map->bias});
  expect_present(oracle,
                 {{"y", found.y},
                  {"grad_x", found.dx},
                  {"grad_l", grad(adapter->factors)},
                  {"merged_W", detach(merged.weight)},
                  {"merged_bias", detach(merged.bias)}},
                 dtype);
}

void pissa_start(const Oracle& oracle, DType dtype) {
  const Tensor w = oracle.input("W", dtype);
  const LoraOptions options = options_of(oracle);
  const double s = lora_scaling(options);
  const LowRankStart got = pissa(w, options.rank, s);
  const auto norms = [](const Tensor& x, int64_t dim) { return sqrt(sum(square(x), dim)); };
  expect_present(oracle,
                 {{"scaling", scalar(s, DType::f64)},
                  {"singular_values", truncated_svd(w, std::min(w.size(0), w.size(1))).s},
                  {"scaled_BA", matmul(got.b, got.a) * s},
                  {"residual_W", got.rest},
                  {"A_row_norms", norms(got.a, 1)},
                  {"B_column_norms", norms(got.b, 0)}},
                 dtype);
}

// |W − Q − BA|.
double error_of(const Tensor& w, const LowRankStart& start) {
  return norm(w - start.rest - matmul(start.b, start.a)).item();
}

void loftq_start(const Oracle& oracle, DType dtype) {
  const Tensor w = oracle.input("W", DType::f64);
  LoftqOptions options;
  options.rank = static_cast<int64_t>(oracle.setting("rank"));
  options.block = static_cast<int64_t>(oracle.setting("blocksize"));
  const auto iterations = static_cast<int64_t>(oracle.setting("iterations"));
  std::vector<double> errors;
  std::vector<int64_t> codes;
  LowRankStart got;
  for (options.iterations = 1; options.iterations <= iterations; ++options.iterations) {
    got = loftq(w, options);
    errors.push_back(error_of(w, got));
    const quant::Nf4Codes found =
        quant::nf4_codes(converted(got.unrounded, DType::f32), options.block);
    for (const uint8_t byte : found.packed.values<uint8_t>()) {
      codes.push_back(byte >> 4);
      codes.push_back(byte & 15);
    }
  }
  const quant::Nf4Codes plain = quant::nf4_codes(converted(w, DType::f32), options.block);
  std::vector<float> rounded(static_cast<size_t>(w.elements()));
  quant::nf4_decode(plain, 0, rounded);
  const double without = norm(w - converted(tensor_of(rounded, w.shape()), DType::f64)).item();
  expect_present(oracle,
                 {{"codes", tensor_of(codes, {iterations, w.size(0), w.size(1)})},
                  {"quantized_W", got.rest},
                  {"BA", matmul(got.b, got.a)},
                  {"errors", tensor_of(errors, {iterations})},
                  {"error_without_adapter", scalar(without, DType::f64)}},
                 dtype);
}

// By the settings and inputs a file has; null where it is none of an adapter.
std::function<void(const Oracle&, DType)> check_of(const Oracle& oracle) {
  const auto has = [&](const char* name) { return oracle.inputs.contains(name); };
  if (has("A") && has("B")) {
    return has("m") ? dora : lora;
  }
  if (has("l")) {
    return ia3;
  }
  if (oracle.expected.contains("residual_W")) {
    return pissa_start;
  }
  return oracle.expected.contains("quantized_W") && oracle.expected.contains("BA") ? loftq_start
                                                                                   : nullptr;
}

TEST(PeftOracles, AreMetByEveryFileOfAnAdapter) {
  std::string other;
  int checked = 0;
  for (const auto& path : oracle_files("methods/peft")) {
    const Oracle oracle = read_oracle(path);
    const auto check = check_of(oracle);
    if (check == nullptr) {
      other += (other.empty() ? "" : ", ") + oracle.file;
      continue;
    }
    SCOPED_TRACE(oracle.file);
    // NF4 rounds in f32, so that a fit of what it lost has f32's accuracy.
    const bool rounds = oracle.expected.contains("quantized_W");
    if (!rounds) {
      check(oracle, DType::f64);
    }
    check(oracle, DType::f32);
    ++checked;
  }
  EXPECT_GT(checked, 0) << "no file in methods/peft of the oracle folder";
  if (!other.empty()) {
    std::cout << "no adapters: " << other << "\n";
  }
}

TEST(TruncatedSvd, KeepsOrthonormalFactorsOfMatricesOfLowRank) {
  // Tall and wide, exact and by subspace iteration, with ranks below what is asked for.
  for (const auto& [rows, columns, rank] :
       {std::tuple<int64_t, int64_t, int64_t>{30, 20, 3}, {20, 30, 3}, {6, 6, 0}, {300, 270, 3}}) {
    const Tensor w =
        rank == 0 ? zeros({rows, columns}, DType::f64)
                  : matmul(random_tensor({rows, rank}, 1), random_tensor({rank, columns}, 2));
    const auto [u, s, v] = truncated_svd(w, 5);
    EXPECT_LE(norm(w - matmul(u * s, transpose(v))).item(), 1e-11 * (1 + norm(w).item()));
    for (const Tensor& factor : {u, v}) {
      const Tensor gram = matmul(transpose(factor), factor);
      EXPECT_NEAR(sum(gram).item(), 5, 1e-10);
      EXPECT_NEAR(sum(square(gram)).item(), 5, 1e-10);
    }
  }
}

}  // namespace
}  // namespace ingot::testing
