// Every operation that ingot/ops declares, differentiated: an operation without an entry here fails
// the test, so none can be forgotten.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "ingot/autograd/gradcheck.h"
#include "ingot/base/files.h"
#include "ingot/ops/attention.h"
#include "ingot/ops/coded_linear.h"
#include "ingot/ops/conv.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/dropout.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/embedding.h"
#include "ingot/ops/glu.h"
#include "ingot/ops/grouped_linear.h"
#include "ingot/ops/index.h"
#include "ingot/ops/info_nce.h"
#include "ingot/ops/int8_linear.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/linear_loss.h"
#include "ingot/ops/losses.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/norm.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/rope.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/ops/token_rows.h"
#include "ingot/tensor/factories.h"
#include "tests/ops/plain_rows.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

enum class Second : bool { no, yes };  // whether the second derivative is promised

struct Differentiated {
  std::function<TensorList(const TensorList&)> call;
  TensorList inputs;
  Second second = Second::yes;
};

Differentiated of_one(Tensor (*f)(const Tensor&), const Tensor& x) {
  return {[f](const TensorList& in) { return TensorList{f(in[0])}; }, {x}};
}

Differentiated of_two(Tensor (*f)(const Tensor&, const Tensor&), const Tensor& a, const Tensor& b) {
  return {[f](const TensorList& in) { return TensorList{f(in[0], in[1])}; }, {a, b}};
}

template <class F>
Differentiated by(F f, TensorList inputs, Second second = Second::yes) {
  return {[f](const TensorList& in) { return TensorList{f(in)}; }, std::move(inputs), second};
}

template <class F>
Differentiated to_list(F f, TensorList inputs, Second second = Second::yes) {
  return {[f](const TensorList& in) -> TensorList { return f(in); }, std::move(inputs), second};
}

using Table = std::map<std::string, Differentiated>;

// Values from 0.5 to 1.5 in no order, all different: where logarithms, roots and kinks are smooth.
Tensor positive(const Shape& shape) {
  Tensor x = empty(shape, DType::f64);
  auto values = x.mutable_values<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] =
        0.5 + static_cast<double>(i * 7 % values.size()) / static_cast<double>(values.size());
  }
  return x;
}

Table elementwise_ops() {
  const Tensor x = random_tensor({3, 4}, 1);
  const Tensor y = random_tensor({4}, 2);
  const Tensor p = positive({3, 4});
  return {{"add", of_two(add, x, y)},
          {"sub", of_two(sub, x, y)},
          {"mul", of_two(mul, x, y)},
          {"div", of_two(div, x, positive({4}))},
          {"maximum", of_two(maximum, x, y)},
          {"minimum", of_two(minimum, x, y)},
          {"where", by([](const TensorList& in) { return where(less(in[0], in[1]), in[0], in[1]); },
                       {x, y})},
          {"exp", of_one(exp, x)},
          {"log", of_one(log, p)},
          {"sqrt", of_one(sqrt, p)},
          {"rsqrt", of_one(rsqrt, p)},
          {"square", of_one(square, x)},
          {"pow", by([](const TensorList& in) { return pow(in[0], 2.5); }, {p})},
          {"abs", of_one(abs, x)},
          {"clamp", by([](const TensorList& in) { return clamp(in[0], -0.4, 0.6); }, {x})},
          {"sin", of_one(sin, x)},
          {"cos", of_one(cos, x)},
          {"relu", of_one(relu, x)},
          {"relu_squared", of_one(relu_squared, x)},
          {"sigmoid", of_one(sigmoid, x)},
          {"log_sigmoid", of_one(log_sigmoid, x)},
          {"softplus", of_one(softplus, x)},
          {"tanh", of_one(tanh, x)},
          {"silu", of_one(silu, x)},
          {"gelu", of_one(gelu, x)},
          {"gelu_tanh", of_one(gelu_tanh, x)},
          {"gated", by([](const TensorList& in) { return gated(in[0], in[1], Gate::silu); },
                       {x, random_tensor({3, 4}, 3)}, Second::no)},
          {"dropout", by(
                          [](const TensorList& in) {
                            return dropout(in[0], 0.3, {1, 2, 3});
                          },
                          {x})}};
}

Table shape_ops() {
  const Tensor x = random_tensor({3, 4}, 1);
  const auto one = [&x](auto f) { return by([f](const TensorList& in) { return f(in[0]); }, {x}); };
  const Tensor index = tensor_of<int64_t>({1, 0, 1}, {3});
  const Tensor places = tensor_of<int64_t>({1, 0, 2, 1, 0, 0}, {3, 2});
  return {
      {"reshape", one([](const Tensor& t) {
         return reshape(t, {2, 6});
       })},
      {"transpose", one([](const Tensor& t) { return transpose(t); })},
      {"permute", one([](const Tensor& t) {
         return permute(t, {1, 0});
       })},
      {"expand", one([](const Tensor& t) {
         return expand(t, {2, 3, 4});
       })},
      {"squeeze", one([](const Tensor& t) {
         return squeeze(reshape(t, {3, 1, 4}), 1);
       })},
      {"unsqueeze", one([](const Tensor& t) { return unsqueeze(t, 0); })},
      {"contiguous", one([](const Tensor& t) { return contiguous(transpose(t)); })},
      {"slice", one([](const Tensor& t) { return slice(t, 1, 0, 4, 2); })},
      {"split", to_list(
                    [](const TensorList& in) {
                      return split(in[0], {1, 3});
                    },
                    {x})},
      {"concat", by(
                     [](const TensorList& in) {
                       return concat({in[0], in[0]}, 0);
                     },
                     {x})},
      {"stack", by(
                    [](const TensorList& in) {
                      return stack({in[0], in[0]}, 0);
                    },
                    {x})},
      {"pad", one([](const Tensor& t) { return pad(t, 1, 1, 2); })},
      {"flip", one([](const Tensor& t) { return flip(t, 0); })},
      {"roll", one([](const Tensor& t) { return roll(t, 1, 1); })},
      {"cast", one([](const Tensor& t) { return cast(t, DType::f64); })},
      {"sum_to", one([](const Tensor& t) {
         return sum_to(t, {1, 4});
       })},
      {"token_rows", by([](const TensorList& in) { return token_rows(in[0]); },
                        {random_tensor({1, 3, 2, 2}, 2)})},
      {"gather", by([places](const TensorList& in) { return gather(in[0], 1, places); }, {x})},
      {"scatter_add",
       by([places](const TensorList& in) { return scatter_add(in[0], 1, places, in[1]); },
          {x, random_tensor({3, 2}, 2)})},
      {"index_select",
       by([index](const TensorList& in) { return index_select(in[0], 0, index); }, {x})},
      {"embedding", by([index](const TensorList& in) { return embedding(in[0], index); }, {x})}};
}

Table reductions_and_products() {
  const Tensor x = random_tensor({3, 4}, 1);
  const auto one = [&x](auto f) { return by([f](const TensorList& in) { return f(in[0]); }, {x}); };
  return {
      {"sum", one([](const Tensor& t) { return sum(t, 1); })},
      {"mean", one([](const Tensor& t) { return mean(t, 0); })},
      {"max", one([](const Tensor& t) { return max(t, 1); })},
      {"min", one([](const Tensor& t) { return min(t, 1); })},
      {"var", one([](const Tensor& t) { return var(t, 1); })},
      {"logsumexp", one([](const Tensor& t) { return logsumexp(t, 1); })},
      {"cumsum", one([](const Tensor& t) { return cumsum(t, 1); })},
      {"norm", one([](const Tensor& t) { return norm(t); })},
      {"softmax", one([](const Tensor& t) { return softmax(t); })},
      {"log_softmax", one([](const Tensor& t) { return log_softmax(t); })},
      {"matmul", of_two(matmul, x, random_tensor({4, 2}, 2))},
      {"linear", by([](const TensorList& in) { return linear(in[0], in[1], in[2]); },
                    {x, random_tensor({2, 4}, 2), random_tensor({2}, 3)})},
      {"linears", to_list(
                      [](const TensorList& in) {
                        return linears(in[0], {in[1], in[2]}, {});
                      },
                      {x, random_tensor({2, 4}, 2), random_tensor({3, 4}, 3)})},
      {"add_linear", by([](const TensorList& in) { return add_linear(in[0], in[1], in[2]); },
                        {random_tensor({3, 2}, 6), x, random_tensor({2, 4}, 7)})},
      {"coded_linear", by([weight = std::make_shared<PlainRows>(random_tensor({2, 4}, 4))](
                              const TensorList& in) { return coded_linear(in[0], weight, in[1]); },
                          {x, random_tensor({2}, 5)})},
      {"int8_linear", by([codes = int8_weight(random_tensor({2, 4}, 4))](
                             const TensorList& in) { return int8_linear(in[0], codes, in[1]); },
                         {x, random_tensor({2}, 3)})},
      {"grouped_linear",
       by(
           [](const TensorList& in) {
             return grouped_linear(in[0], {in[1], in[2]}, tensor_of<int64_t>({1, 2}, {2}));
           },
           {x, random_tensor({2, 4}, 2), random_tensor({2, 4}, 3)}, Second::no)},
      {"grouped_linears",
       to_list(
           [](const TensorList& in) {
             return grouped_linears(in[0], {{in[1]}, {in[2]}}, tensor_of<int64_t>({3}, {1}));
           },
           {x, random_tensor({2, 4}, 2), random_tensor({3, 4}, 3)}, Second::no)},
      {"conv1d",
       by([](const TensorList& in) { return conv1d(in[0], in[1], in[2]); },
          {random_tensor({2, 2, 5}, 1), random_tensor({3, 2, 3}, 2), random_tensor({3}, 3)})},
      {"conv2d", by([](const TensorList& in) { return conv2d(in[0], in[1], in[2]); },
                    {random_tensor({1, 2, 4, 4}, 1), random_tensor({2, 2, 3, 3}, 2),
                     random_tensor({2}, 3)})}};
}

Table layers_and_losses() {
  const Tensor x = random_tensor({3, 4}, 1);
  const Tensor row = random_tensor({4}, 2);
  const Tensor shift = random_tensor({4}, 3);
  const Tensor other = random_tensor({3, 4}, 4);
  const Tensor labels = tensor_of<int64_t>({1, 3, 0}, {3});
  const Tensor heads = random_tensor({1, 3, 2, 4}, 5);
  const RopeTables tables = rope_tables(arange(3, DType::i64), 4, 100, DType::f64);
  return {
      {"layer_norm", by([](const TensorList& in) { return layer_norm(in[0], in[1], in[2], 1e-5); },
                        {x, row, shift})},
      {"rms_norm", by([](const TensorList& in) { return rms_norm(in[0], in[1], 1e-5); }, {x, row})},
      {"add_layer_norm", to_list(
                             [](const TensorList& in) {
                               const NormedSum y = add_layer_norm(in[0], in[1], in[2], in[3], 1e-5);
                               return TensorList{y.normed, y.sum};
                             },
                             {x, other, row, shift}, Second::no)},
      {"add_rms_norm", to_list(
                           [](const TensorList& in) {
                             const NormedSum y = add_rms_norm(in[0], in[1], in[2], 1e-5);
                             return TensorList{y.normed, y.sum};
                           },
                           {x, other, row}, Second::no)},
      {"rope", by(
                   [tables](const TensorList& in) {
                     return rope(in[0], tables.cos, tables.sin, RopeLayout::half_split);
                   },
                   {heads})},
      {"attention",
       by([](const TensorList& in) { return attention(in[0], in[1], in[2]); },
          {heads, random_tensor({1, 3, 2, 4}, 6), random_tensor({1, 3, 2, 4}, 7)}, Second::no)},
      {"cross_entropy",
       by([labels](const TensorList& in) { return cross_entropy(in[0], labels, Reduction::mean); },
          {x})},
      {"linear_cross_entropy",
       by([labels](const TensorList& in) { return linear_cross_entropy(in[0], in[1], labels); },
          {x, random_tensor({5, 4}, 2)}, Second::no)},
      {"linear_log_probability",
       by([labels](const TensorList& in) { return linear_log_probability(in[0], in[1], labels); },
          {x, random_tensor({5, 4}, 2)}, Second::no)},
      {"sum_over_logits", by(
                              [](const TensorList& in) {
                                return sum_over_logits(in[0], in[1],
                                                       [](const Tensor& logits, int64_t, int64_t) {
                                                         return sum(square(softmax(logits)));
                                                       });
                              },
                              {x, random_tensor({5, 4}, 2)}, Second::no)},
      {"kl_divergence",
       by([](const TensorList& in) { return kl_divergence(in[0], in[1]); }, {x, other})},
      {"mse",
       by([](const TensorList& in) { return mse(in[0], in[1], Reduction::mean); }, {x, other})},
      {"scaled_cosines",
       by([](const TensorList& in) { return scaled_cosines(in[0], in[1], 0.3); }, {x, other})},
      {"info_nce",
       by([](const TensorList& in) { return info_nce(in[0], in[1], 0.3, Contrast::both_ways); },
          {x, other})},
      {"cosine_similarity",
       by([](const TensorList& in) { return cosine_similarity(in[0], in[1]); }, {x, other})}};
}

Table every_op() {
  Table all = elementwise_ops();
  all.merge(shape_ops());
  all.merge(reductions_and_products());
  all.merge(layers_and_losses());
  return all;
}

// Those that have no gradient: their results are integers, masks or constants.
const std::set<std::string> without_gradient = {
    "argmax",         "counted_places", "sort",         "topk",        "one_hot",
    "equal",          "not_equal",      "less",         "less_equal",  "greater",
    "greater_equal",  "rope_tables",    "dense_weight", "dense_heads", "symmetric_eigenvalues",
    "symmetric_power"};

// The functions that the headers of ingot/ops declare; `unary` is what elementwise ones are made
// of.
std::set<std::string> declared(const std::filesystem::path& folder) {
  const std::regex function(
      "(?:^|\n)(?:Tensor|TensorList|NormedSum|Sorted|RopeTables) ([a-z_0-9]+)\\(");
  std::set<std::string> found;
  for (const std::string& name : list_folder(folder)) {
    if (!name.ends_with(".h")) {
      continue;
    }
    const std::string text = read_file(folder / name);
    for (auto at = std::sregex_iterator(text.begin(), text.end(), function);
         at != std::sregex_iterator(); ++at) {
      found.insert((*at)[1]);
    }
  }
  found.erase("unary");
  return found;
}

TEST(Autodiff, KnowsEveryOperation) {
  const auto folder = std::filesystem::path(__FILE__).parent_path() / "../../ingot/ops";
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "needs the sources: no folder " << folder;
  }
  std::set<std::string> known = without_gradient;
  for (const auto& [name, op] : every_op()) {
    known.insert(name);
  }
  EXPECT_EQ(declared(folder), known);
}

TEST(Autodiff, EveryGradientIsTheLimitOfDifferences) {
  for (const auto& [name, op] : every_op()) {
    EXPECT_EQ(gradcheck(op.call, op.inputs), "") << name;
  }
}

TEST(Autodiff, EverySecondDerivativeIsRightOrRefused) {
  for (const auto& [name, op] : every_op()) {
    SCOPED_TRACE(name);
    if (op.second == Second::yes) {
      EXPECT_EQ(gradgradcheck(op.call, op.inputs), "");
    } else {
      expect_error([&op] { gradgradcheck(op.call, op.inputs); }, "has no second derivative");
    }
  }
}

}  // namespace
}  // namespace ingot::testing
