#include "ingot/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <source_location>

#include "ingot/autograd/record.h"
#include "ingot/autograd/watch.h"
#include "ingot/device/allocator.h"
#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/attention.h"
#include "ingot/ops/token_rows.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

void check_shapes(const Tensor& q, const Tensor& k, const Tensor& v) {
  check(q.rank() == 4 && k.rank() == 4, ErrorKind::shape,
        "attention: takes q of shape [B, T, H, C] and k, v of [B, S, K, C]: q is ", q.shape(),
        ", k is ", k.shape());
  check(k.shape() == v.shape(), ErrorKind::shape, "attention: keys and values differ: k is ",
        k.shape(), ", v is ", v.shape());
  check(q.size(0) == k.size(0) && q.size(3) == k.size(3), ErrorKind::shape,
        "attention: queries and keys differ in batch or head width: q is ", q.shape(), ", k is ",
        k.shape());
  check(k.size(2) > 0 && q.size(2) % k.size(2) == 0, ErrorKind::shape,
        "attention: query heads are no multiple of key heads: H is ", q.size(2), ", K is ",
        k.size(2));
  check(is_float(q.dtype()) && q.dtype() == k.dtype() && q.dtype() == v.dtype(), ErrorKind::dtype,
        "attention: takes q, k and v of one floating-point type: got ", q.dtype(), ", ", k.dtype(),
        " and ", v.dtype());
}

void check_option(const char* name, const Tensor& x, const Shape& shape, DType dtype) {
  check(!x.defined() || (x.shape() == shape && x.dtype() == dtype), ErrorKind::shape,
        "attention: ", name, " does not fit: takes ", dtype, " of shape ", shape, ", got ",
        x.defined() ? x.dtype() : dtype, " of ", x.shape());
}

void check_options(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  check(options.window >= 0, ErrorKind::argument, "attention: the window is negative: got ",
        options.window, "; give 0 for none");
  check(options.softcap >= 0, ErrorKind::argument, "attention: the softcap is negative: got ",
        options.softcap, "; give 0 for none");
  check(options.query_offset >= 0, ErrorKind::argument,
        "attention: the query offset is negative: got ", options.query_offset);
  check_option("documents", options.documents, {k.size(0), k.size(1)}, DType::i32);
  check_option("key_lengths", options.key_lengths, {k.size(0)}, DType::i32);
  check_option("alibi_slopes", options.alibi_slopes, {q.size(2)}, DType::f32);
  check(!options.key_scales.defined() && !options.value_scales.defined(), ErrorKind::argument,
        "attention: keys and values have scales in pages alone");
  check(!options.documents.defined() || options.query_offset + q.size(1) <= k.size(1),
        ErrorKind::shape, "attention: queries lie beyond the keys, whose documents are given: ",
        "the last query is at ", options.query_offset + q.size(1) - 1, ", S is ", k.size(1));
}

// Pairs (i, j) that causal and window leave visible in one head.
int64_t visible_pairs(int64_t queries, int64_t keys, const AttentionOptions& options) {
  int64_t pairs = 0;
  for (int64_t i = options.query_offset; i < options.query_offset + queries; ++i) {
    int64_t end = keys;
    if (options.causal) {
      end = std::min(end, i + 1);
    } else if (options.window > 0) {
      end = std::min(end, i + options.window);
    }
    const int64_t begin = options.window > 0 ? std::max<int64_t>(i - options.window + 1, 0) : 0;
    pairs += std::max<int64_t>(end - begin, 0);
  }
  return pairs;
}

int64_t forward_flops(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  return 4 * q.size(0) * q.size(2) * q.size(3) * visible_pairs(q.size(1), k.size(1), options);
}

// The options as the kernels take them; a view into each tensor given.
kernels::AttentionRule rule_of(const AttentionOptions& options, int64_t width) {
  const auto view = [](const Tensor& x) { return x.defined() ? x.view() : ConstView(); };
  return {.causal = options.causal,
          .scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(width)),
          .window = options.window,
          .softcap = options.softcap,
          .query_offset = options.query_offset,
          .documents = view(options.documents),
          .key_lengths = view(options.key_lengths),
          .alibi_slopes = view(options.alibi_slopes),
          .pages = view(options.pages),
          .key_scales = view(options.key_scales),
          .value_scales = view(options.value_scales)};
}

Tensor workspace_of(int64_t elements, const Tensor& q) {
  const PurposeScope scope(Purpose::workspace);
  return empty({elements}, accumulator(q.dtype()), q.device());
}

// The options' tensors, dense and watched for writes until the backward.
struct SavedOptions {
  AttentionOptions options;
  Saved documents, key_lengths, alibi_slopes;

  explicit SavedOptions(const AttentionOptions& given)
      : options(given),
        documents(given.documents),
        key_lengths(given.key_lengths),
        alibi_slopes(given.alibi_slopes) {}
  const AttentionOptions& operator()() const {
    documents();
    key_lengths();
    alibi_slopes();
    return options;
  }
};

TensorList attention_gradients(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& y,
                               const Tensor& lse, const Tensor& given_dy,
                               const AttentionOptions& options) {
  const Tensor dy = token_rows(given_dy);
  Tensor dq = empty(q.shape(), q.dtype(), q.device());
  Tensor dk = empty(k.shape(), k.dtype(), k.device());
  Tensor dv = empty(v.shape(), v.dtype(), v.device());
  Tensor delta = workspace_of(lse.elements(), q);
  Tensor space =
      workspace_of(kernels::attention_backward_workspace(q.shape(), k.shape(), q.dtype()), q);
  count_flops(forward_flops(q, k, options) * 5 / 2);
  on_device(q.device(), [&](const auto& on) {
    kernels::attention_backward(on, {q.view(), k.view(), v.view(), y.view(), lse.view()}, dy.view(),
                                rule_of(options, q.size(3)),
                                {dq.fresh_view(), dk.fresh_view(), dv.fresh_view()},
                                delta.fresh_view(), space.fresh_view());
  });
  const char* name = "attention's backward";
  return record(name, TensorList{dq, dk, dv}, first_order_only(name, {q, k, v, given_dy}));
}

constexpr int64_t most_paged_queries = 4;

// Of one type, or in 8 bits with their scales.
void check_paged_types(const Tensor& q, const Tensor& k, const Tensor& v,
                       const AttentionOptions& o) {
  const bool coded = k.dtype() == DType::i8 && v.dtype() == DType::i8;
  if (!coded) {
    check(is_float(q.dtype()) && q.dtype() == k.dtype() && q.dtype() == v.dtype(), ErrorKind::dtype,
          "attention: takes q, k and v of one floating-point type: got ", q.dtype(), ", ",
          k.dtype(), " and ", v.dtype());
  }
  check(!coded || (is_float(q.dtype()) && q.dtype() != DType::f64), ErrorKind::dtype,
        "attention: takes queries in f32, bf16 or f16 where keys and values are in 8 bits: got ",
        q.dtype());
  check(coded == o.key_scales.defined() && coded == o.value_scales.defined(), ErrorKind::argument,
        "attention: keys and values in 8 bits come with their scales, others without: k is ",
        k.dtype());
  const Shape scales = {k.size(0), k.size(1), k.size(2), 1};
  check_option("key_scales", o.key_scales, scales, DType::f32);
  check_option("value_scales", o.value_scales, scales, DType::f32);
}

void check_paged(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  check(q.rank() == 4 && k.rank() == 4 && k.shape() == v.shape() && q.size(3) == k.size(3) &&
            k.size(2) > 0 && q.size(2) % k.size(2) == 0,
        ErrorKind::shape, "attention: takes q of shape [B, T, H, C] and pages k, v of [P, S, K, C]",
        ": q is ", q.shape(), ", k is ", k.shape(), ", v is ", v.shape());
  check_paged_types(q, k, v, o);
  check(q.size(1) <= most_paged_queries, ErrorKind::argument, "attention: keys in pages take at ",
        "most ", most_paged_queries, " queries a row: got ", q.size(1));
  const int64_t page = k.size(1);
  check(page > 0 && (64 % page == 0 || page % 64 == 0), ErrorKind::argument,
        "attention: pages hold a divisor or a multiple of 64 tokens: got ", page);
  check(o.pages.rank() == 2, ErrorKind::shape, "attention: pages is a table [B, N]: got ",
        o.pages.shape());
  check_option("pages", o.pages, {q.size(0), o.pages.size(1)}, DType::i32);
  check(o.key_lengths.defined() && o.causal && !o.documents.defined(), ErrorKind::argument,
        "attention: keys in pages need key_lengths, and are causal and of one document");
  check_option("key_lengths", o.key_lengths, {q.size(0)}, DType::i32);
  check_option("alibi_slopes", o.alibi_slopes, {q.size(2)}, DType::f32);
  check(!needs_grad(q) && !needs_grad(k) && !needs_grad(v), ErrorKind::argument,
        "attention: keys in pages are for generating: nothing is recorded; use NoGrad");
}

Tensor paged_attention(const Tensor& given_q, const Tensor& k, const Tensor& v,
                       const AttentionOptions& given) {
  check_paged(given_q, k, v, given);
  const Tensor q = token_rows(given_q);
  AttentionOptions options = given;
  options.pages = dense(given.pages);
  options.key_lengths = dense(given.key_lengths);
  const Shape keys = {q.size(0), options.pages.size(1) * k.size(1), k.size(2), k.size(3)};
  Tensor y = empty(q.shape(), q.dtype(), q.device());
  Tensor lse = empty({q.size(0), q.size(2), q.size(1)}, accumulator(q.dtype()), q.device());
  Tensor space = workspace_of(kernels::attention_workspace(q.shape(), keys, q.dtype()), q);
  count_flops(4 * q.elements() * keys[1]);
  on_device(q.device(), [&](const auto& on) {
    kernels::attention(on, q.view(), k.view(), v.view(), rule_of(options, q.size(3)),
                       y.fresh_view(), lse.fresh_view(), space.fresh_view());
  });
  return y;
}

struct Attended {
  Tensor y, lse;
};

Attended attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                const std::source_location& caller = std::source_location::current()) {
  Attended out{empty(q.shape(), q.dtype(), q.device()),
               empty({q.size(0), q.size(2), q.size(1)}, accumulator(q.dtype()), q.device())};
  Tensor space = workspace_of(kernels::attention_workspace(q.shape(), k.shape(), q.dtype()), q);
  on_device(
      q.device(),
      [&](const auto& on) {
        kernels::attention(on, q.view(), k.view(), v.view(), rule_of(options, q.size(3)),
                           out.y.fresh_view(), out.lse.fresh_view(), space.fresh_view());
      },
      caller);
  return out;
}

// The weights [B, H, T, S] in f32, through the kernel itself: a value that is 1 in column c at key
// j and 0 elsewhere makes column c of the result the weights of key j; C keys at a time.
Tensor weights_of(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  const int64_t rows = k.size(0), keys = k.size(1), groups = k.size(2), columns = k.size(3);
  const int64_t queries = q.size(1), heads = q.size(2);
  Tensor out = empty({rows, heads, queries, keys}, DType::f32);
  const auto weights = out.mutable_values<float>();
  for (int64_t first = 0; first < keys; first += columns) {
    const int64_t count = std::min(columns, keys - first);
    Tensor unit = zeros(k.shape(), DType::f32);
    const auto values = unit.mutable_values<float>();
    for (int64_t b = 0; b < rows; ++b) {
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t g = 0; g < groups; ++g) {
          values[static_cast<size_t>(((b * keys + first + c) * groups + g) * columns + c)] = 1;
        }
      }
    }
    const Tensor y = converted(attend(q, k, converted(unit, k.dtype()), options).y, DType::f32);
    const auto found = y.values<float>();
    for (int64_t b = 0; b < rows; ++b) {
      for (int64_t t = 0; t < queries; ++t) {
        for (int64_t h = 0; h < heads; ++h) {
          const int64_t from = ((b * queries + t) * heads + h) * columns;
          const int64_t to = ((b * heads + h) * queries + t) * keys + first;
          std::copy_n(found.begin() + from, count, weights.begin() + to);
        }
      }
    }
  }
  return out;
}

}  // namespace

Tensor attention(const Tensor& given_q, const Tensor& given_k, const Tensor& given_v,
                 const AttentionOptions& given) {
  if (given.pages.defined()) {
    return paged_attention(given_q, given_k, given_v, given);
  }
  check_shapes(given_q, given_k, given_v);
  check_options(given_q, given_k, given);
  const Tensor q = token_rows(given_q);
  const Tensor k = token_rows(given_k);
  const Tensor v = token_rows(given_v);
  AttentionOptions options = given;
  for (Tensor* x : {&options.documents, &options.key_lengths, &options.alibi_slopes}) {
    *x = x->defined() ? dense(*x) : *x;
  }
  if (Watch* watch = watching()) {
    const double scale = rule_of(options, q.size(3)).scale;
    watch->shown("attention", {q, k, scalar(scale, DType::f64, q.device())});
    if (watch->wants("attention weights")) {
      watch->shown("attention weights", {weights_of(q, k, options)});
    }
  }
  count_flops(forward_flops(q, k, options));
  auto [y, lse] = attend(q, k, v, options);
  return record("attention", y,
                jointly({q, k, v}, [q = saved(q), k = saved(k), v = saved(v), lse = saved(lse),
                                    options = SavedOptions(options)](const TensorList& dys,
                                                                     const TensorList& ys) {
                  return attention_gradients(q(), k(), v(), ys[0], lse(), dys[0], options());
                }));
}

}  // namespace ingot
