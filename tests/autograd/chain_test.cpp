#include "ingot/autograd/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

Tensor leaf(double value) {
  Tensor x = scalar(value, DType::f64);
  require_grad(x);
  return x;
}

// The product of the operations' own derivatives along each path from y to x, summed over paths:
// nothing of what arrived or was handed on is used.
double product_of_locals(const std::vector<ChainLink>& links, const Node* from, const Node* to) {
  if (from == to) {
    return 1;
  }
  double sum = 0;
  for (const ChainLink& link : links) {
    if (link.of == from) {
      sum += link.local.item() * product_of_locals(links, link.to, to);
    }
  }
  return sum;
}

TEST(Chain, ProductsOfLocalDerivativesAreTheClosedForm) {
  for (const double at : {-1.2, -0.3, 0.5, 1.1}) {
    const Tensor x = leaf(at);
    const Tensor y = sin(exp(square(x)));
    const double e = std::exp(at * at);
    const double expected = std::cos(e) * e * 2 * at;
    const auto links = chain_of(y);
    ASSERT_EQ(links.size(), 3u);
    const double tolerance = 1e-12 * std::max(1.0, std::abs(expected));
    EXPECT_NEAR(product_of_locals(links, y.node().get(), x.node().get()), expected, tolerance);
    backward(y);
    EXPECT_NEAR(grad(x).item(), expected, tolerance);
    EXPECT_EQ(links.back().handed_on.item(), grad(x).item());
  }
}

TEST(Chain, PathsOfABranchingGraphAreSummed) {
  for (const double at : {0.4, 1.5, 2.2}) {
    const Tensor x = leaf(at);
    const Tensor s = square(x);
    const Tensor y = add(mul(sin(s), exp(x)), log(s));  // six operations, s and x used twice
    const double expected =
        std::exp(at) * (std::cos(at * at) * 2 * at + std::sin(at * at)) + 2 / at;
    const auto links = chain_of(y);
    const double tolerance = 1e-12 * std::abs(expected);
    EXPECT_NEAR(product_of_locals(links, y.node().get(), x.node().get()), expected, tolerance);
    double arrived = 0;
    for (const ChainLink& link : links) {
      EXPECT_NEAR(link.handed_on.item(), link.arrived.item() * link.local.item(),
                  1e-12 * std::abs(link.handed_on.item()));
      arrived += link.to == x.node().get() ? link.handed_on.item() : 0;
    }
    backward(y);  // still there
    EXPECT_NEAR(grad(x).item(), expected, tolerance);
    EXPECT_NEAR(arrived, grad(x).item(), tolerance);
  }
}

TEST(Chain, SaysWhatItCannotTakeApart) {
  const Tensor x = leaf(2);
  const Tensor y = square(x);
  backward(y);
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { chain_of(y); }),
              HasSubstr("its formulas are used up; ask before backward()"));
  EXPECT_THAT(message_of(ErrorKind::argument, [] { chain_of(scalar(1, DType::f64)); }),
              HasSubstr("takes a tensor of one element with a history"));
}

}  // namespace
}  // namespace ingot::testing
