#include "ingot/ops/grouped_linear.h"

#include <numeric>
#include <source_location>
#include <utility>

#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/matmul.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

using kernels::Accumulate;

void check_weights(const Tensor& x, const TensorList& weights, const Tensor& counts) {
  check(static_cast<int64_t>(weights.size()) == counts.elements() && !weights.empty(),
        ErrorKind::shape, "grouped_linear: takes one count a weight: ", weights.size(),
        " weights, counts is ", counts.shape());
  for (size_t e = 0; e < weights.size(); ++e) {
    const Tensor& w = weights[e];
    check(w.rank() == 2 && w.size(1) == x.size(1) && w.size(0) == weights[0].size(0),
          ErrorKind::shape, "grouped_linear: weights do not fit: x is ", x.shape(),
          ", weight 0 is ", weights[0].shape(), ", weight ", e, " is ", w.shape());
    check(w.dtype() == x.dtype(), ErrorKind::dtype, "grouped_linear: dtypes differ: x is ",
          x.dtype(), ", weight ", e, " is ", w.dtype(), "; cast one of them");
    check(w.device() == x.device(), ErrorKind::device, "grouped_linear: devices differ: x is on ",
          x.device(), ", weight ", e, " is on ", w.device());
  }
}

void check_inputs(const Tensor& x, const Tensor& counts) {
  check(is_float(x.dtype()), ErrorKind::dtype, "grouped_linear: takes floating-point tensors: got ",
        x.dtype());
  check(x.rank() == 2, ErrorKind::shape, "grouped_linear: takes x [N, In]: got ", x.shape());
  check(counts.rank() == 1 && counts.dtype() == DType::i64, ErrorKind::shape,
        "grouped_linear: takes counts [E] of i64: got ", counts.dtype(), " ", counts.shape());
}

struct Range {
  int64_t begin = 0, end = 0;
};

// The rows of each map. Reads values: for use inside on_device only.
std::vector<Range> ranges_of(const Tensor& counts, int64_t rows) {
  std::vector<Range> out;
  int64_t begin = 0;
  for (const int64_t count : counts.values<int64_t>()) {
    check(count >= 0 && count <= rows - begin, ErrorKind::argument,
          "grouped_linear: counts do not divide the rows: count ", out.size(), " is ", count, ", ",
          rows - begin, " of ", rows, " rows are left");
    out.push_back({begin, begin + count});
    begin += count;
  }
  check(begin == rows, ErrorKind::argument,
        "grouped_linear: counts do not divide the rows: they sum to ", begin, ", x has ", rows,
        " rows");
  return out;
}

Tensor rows_of(const Tensor& x, Range range) { return sliced(x, 0, range.begin, range.end); }

// x without history, as a matrix whose ranges of rows the kernel reads.
Tensor as_rows(const Tensor& x) {
  const Tensor plain = detach(x);
  return kernels::matmul_reads(plain.shape(), plain.strides()) ? plain : copy_of(plain);
}

TensorList as_rows(const std::vector<Saved>& weights) {
  TensorList out;
  for (const Saved& weight : weights) {
    out.push_back(as_rows(weight()));
  }
  return out;
}

// y_range = x_range w, or y_range += x_range w, for every range; w_e: [x's columns, y's columns].
void multiply(const Tensor& x, const TensorList& ws, const Tensor& counts, Tensor& y,
              Accumulate accumulate = Accumulate::no,
              const std::source_location& caller = std::source_location::current()) {
  count_flops(2 * x.size(0) * x.size(1) * y.size(1));
  on_device(
      x.device(),
      [&](const auto& on) {
        const std::vector<Range> ranges = ranges_of(counts, x.size(0));
        for (size_t e = 0; e < ws.size(); ++e) {
          if (ranges[e].begin < ranges[e].end) {
            kernels::matmul(on, rows_of(x, ranges[e]).view(), ws[e].view(),
                            rows_of(y, ranges[e]).fresh_view(), accumulate);
          }
        }
      },
      caller);
}

Tensor forward(const Tensor& x, const TensorList& weights, const Tensor& counts) {
  TensorList turned;
  for (const Tensor& weight : weights) {
    turned.push_back(transposed(as_rows(weight), 0, 1));
  }
  Tensor y = empty({x.size(0), weights[0].size(0)}, x.dtype(), x.device());
  multiply(as_rows(x), turned, counts, y);
  return y;
}

// dx_n = Σ_i dy_in W_ie. Each product is added in place.
Tensor input_gradient(const TensorList& dys, const std::vector<std::vector<Saved>>& weights,
                      const Tensor& counts) {
  Tensor dx;
  for (size_t i = 0; i < dys.size(); ++i) {
    if (!dys[i].defined()) {
      continue;
    }
    const TensorList ws = as_rows(weights[i]);
    const Accumulate accumulate = dx.defined() ? Accumulate::yes : Accumulate::no;
    if (!dx.defined()) {
      dx = empty({dys[i].size(0), ws[0].size(1)}, dys[i].dtype(), dys[i].device());
    }
    multiply(as_rows(dys[i]), ws, counts, dx, accumulate);
  }
  return dx;
}

// The one map whose weight a gradient is of.
struct Place {
  size_t result, map;
};

// dW += Σ_n dy_n x_nᵀ over the rows of one map, in place; dW: [Out, In].
void add_weight_gradient(const Tensor& dy, const Tensor& x, const Tensor& counts, size_t map,
                         Tensor& dw) {
  // An even share: the ranges' sum is what all of them count.
  count_flops(2 * x.size(0) * x.size(1) * dy.size(1) / counts.elements());
  on_device(dy.device(), [&](const auto& on) {
    const Range range = ranges_of(counts, x.size(0))[map];
    if (range.begin < range.end) {
      kernels::matmul(on, transposed(rows_of(as_rows(dy), range), 0, 1).view(),
                      rows_of(as_rows(x), range).view(), dw.fresh_view(), Accumulate::yes);
    }
  });
}

Formula weight_formula(const Tensor& x, const Tensor& weight, const Tensor& counts, Place place) {
  Formula formula = jointly({weight}, [place, x = saved(x), counts = saved(counts),
                                       shape = weight.shape()](const TensorList& dys) {
    const Tensor& dy = dys[place.result];
    if (!dy.defined()) {
      return TensorList{Tensor()};
    }
    Tensor dw = zeros(shape, accumulator(dy.dtype()), dy.device());
    add_weight_gradient(dy, x(), counts(), place.map, dw);
    return record("grouped_linear", TensorList{dw}, first_order_only("grouped_linear", {x(), dy}));
  });
  formula.add_to = [place, x = saved(x), counts = saved(counts)](const TensorList& dys,
                                                                 Tensor& sum) {
    if (dys[place.result].defined()) {
      add_weight_gradient(dys[place.result], x(), counts(), place.map, sum);
    }
  };
  return formula;
}

std::vector<std::vector<Saved>> all_saved(const std::vector<TensorList>& weights) {
  std::vector<std::vector<Saved>> out;
  for (const TensorList& list : weights) {
    out.emplace_back();
    for (const Tensor& weight : list) {
      out.back().push_back(saved(weight));
    }
  }
  return out;
}

Formula input_formula(const Tensor& x, const std::vector<TensorList>& weights,
                      const Tensor& counts) {
  return jointly({x}, [kept = all_saved(weights), counts = saved(counts)](const TensorList& dys) {
    const Tensor dx = input_gradient(dys, kept, counts());
    if (!dx.defined()) {
      return TensorList{dx};
    }
    TensorList inputs;
    for (size_t i = 0; i < dys.size(); ++i) {
      if (dys[i].defined()) {
        inputs.push_back(dys[i]);
        for (const Saved& weight : kept[i]) {
          inputs.push_back(weight());
        }
      }
    }
    return record("grouped_linear", TensorList{dx}, first_order_only("grouped_linear", inputs));
  });
}

}  // namespace

Tensor grouped_linear(const Tensor& x, const TensorList& weights, const Tensor& counts) {
  return grouped_linears(x, {weights}, counts).front();
}

TensorList grouped_linears(const Tensor& x, const std::vector<TensorList>& weights,
                           const Tensor& given_counts) {
  check_inputs(x, given_counts);
  const Tensor counts = dense(given_counts);
  TensorList ys;
  std::vector<Formula> formulas;
  for (size_t i = 0; i < weights.size(); ++i) {
    check_weights(x, weights[i], counts);
    ys.push_back(forward(x, weights[i], counts));
    for (size_t e = 0; e < weights[i].size(); ++e) {
      formulas.push_back(weight_formula(x, weights[i][e], counts, {i, e}));
    }
  }
  formulas.push_back(input_formula(x, weights, counts));
  return record_formulas("grouped_linear", std::move(ys), std::move(formulas));
}

}  // namespace ingot
