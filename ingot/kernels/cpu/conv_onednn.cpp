#include <array>

#include "ingot/kernels/cpu/conv_routes.h"
#include "ingot/kernels/cpu/onednn.h"

namespace ingot::kernels {
namespace {

using dnnl::memory;

constexpr size_t primitives_kept = 64;
constexpr auto algorithm = dnnl::algorithm::convolution_direct;
constexpr bool allow_empty = true;

// The arguments of any of the three primitives: w is dw and y is dy for the gradients.
struct Descriptors {
  memory::desc x, w, y, bias;
  memory::dims stride, dilation, padding;
};

memory::dims dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }
memory::dims dims_of(const std::array<int64_t, 2>& steps) { return {steps.begin(), steps.end()}; }

memory::desc dense_desc(const Shape& shape, DType dtype) {
  return {dims_of(shape), onednn::type_of(dtype), dims_of(dense_strides(shape))};
}

// oneDNN gives groups a dimension of their own.
memory::desc taps_desc(Shape shape, DType dtype, int64_t groups) {
  if (groups > 1) {
    shape[0] /= groups;
    shape.insert(0, groups);
  }
  return dense_desc(shape, dtype);
}

// oneDNN counts dilation from 0.
Descriptors describe(const ConstView& x, const ConstView& w, const ConstView& y,
                     const ConstView& bias, const ConvSteps& steps) {
  Descriptors out;
  out.x = dense_desc(x.shape, x.dtype);
  out.w = taps_desc(w.shape, w.dtype, steps.groups);
  out.y = dense_desc(y.shape, y.dtype);
  if (bias.data != nullptr) {
    out.bias = dense_desc(bias.shape, bias.dtype);
  }
  out.stride = dims_of(steps.stride);
  out.dilation = {steps.dilation[0] - 1, steps.dilation[1] - 1};
  out.padding = dims_of(steps.padding);
  return out;
}

// The padding at the far sides, which oneDNN wants to agree with the result's size: negative where
// a stride leaves elements over.
memory::dims far_padding(const Descriptors& d, const ConstView& x, const ConstView& w,
                         const ConstView& y) {
  memory::dims far(2);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 2;
    const int64_t reach = (w.shape[axis] - 1) * (d.dilation[i] + 1) + 1;
    far[i] = (y.shape[axis] - 1) * d.stride[i] + reach - x.shape[axis] - d.padding[i];
  }
  return far;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr made;
  made.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return made;
}

dnnl::convolution_forward::primitive_desc plan_forward(const Descriptors& d,
                                                       const memory::dims& far) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return {onednn::engine(), kind,       algorithm, d.x, d.w,          d.bias,     d.y,
          d.stride,         d.dilation, d.padding, far, attributes(), allow_empty};
#else
  return {dnnl::convolution_forward::desc(kind, algorithm, d.x, d.w, d.bias, d.y, d.stride,
                                          d.dilation, d.padding, far),
          attributes(), onednn::engine(), allow_empty};
#endif
}

dnnl::convolution_backward_data::primitive_desc plan_input_gradient(
    const Descriptors& d, const memory::dims& far,
    const dnnl::convolution_forward::primitive_desc& hint) {
#if DNNL_VERSION_MAJOR >= 3
  return {onednn::engine(), algorithm, d.x, d.w,  d.y,          d.stride,
          d.dilation,       d.padding, far, hint, attributes(), allow_empty};
#else
  return {dnnl::convolution_backward_data::desc(algorithm, d.x, d.w, d.y, d.stride, d.dilation,
                                                d.padding, far),
          attributes(), onednn::engine(), hint, allow_empty};
#endif
}

dnnl::convolution_backward_weights::primitive_desc plan_weight_gradient(
    const Descriptors& d, const memory::dims& far,
    const dnnl::convolution_forward::primitive_desc& hint) {
#if DNNL_VERSION_MAJOR >= 3
  return {onednn::engine(), algorithm, d.x, d.w,  d.y,          d.stride,
          d.dilation,       d.padding, far, hint, attributes(), allow_empty};
#else
  return {dnnl::convolution_backward_weights::desc(algorithm, d.x, d.w, d.y, d.stride, d.dilation,
                                                   d.padding, far),
          attributes(), onednn::engine(), hint, allow_empty};
#endif
}

enum class Which : int64_t { forward, input_gradient, weight_gradient };

// A primitive of plain layouts with its memory objects under the three argument names.
template <class Primitive, class Plan>
onednn::Prepared prepared_from(const Plan& planned, const Descriptors& d,
                               const std::array<int, 3>& names) {
  onednn::Prepared made;
  if (!planned) {
    return made;
  }
  const auto& engine = onednn::engine();
  made.primitive = Primitive(planned);
  made.scratch_bytes = planned.scratchpad_desc().get_size();
  made.arguments = {
      {names[0], memory(d.x, engine, DNNL_MEMORY_NONE)},
      {names[1], memory(d.w, engine, DNNL_MEMORY_NONE)},
      {names[2], memory(d.y, engine, DNNL_MEMORY_NONE)},
      {DNNL_ARG_SCRATCHPAD, memory(planned.scratchpad_desc(), engine, DNNL_MEMORY_NONE)}};
  return made;
}

constexpr std::array<std::array<int, 3>, 3> argument_names{{
    {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
    {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
    {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
}};

onednn::Prepared prepare(Which which, const ConstView& x, const ConstView& w, const ConstView& y,
                         const ConstView& bias, const ConvSteps& steps) {
  const Descriptors d = describe(x, w, y, bias, steps);
  const memory::dims far = far_padding(d, x, w, y);
  const auto& names = argument_names[static_cast<size_t>(which)];
  if (which == Which::forward) {
    onednn::Prepared made =
        prepared_from<dnnl::convolution_forward>(plan_forward(d, far), d, names);
    if (made && bias.data != nullptr) {
      made.arguments.emplace(DNNL_ARG_BIAS, memory(d.bias, onednn::engine(), DNNL_MEMORY_NONE));
    }
    return made;
  }
  Descriptors like = d;  // the forward pass that the gradients belong to: one dtype throughout
  like.w = taps_desc(w.shape, x.dtype, steps.groups);
  const auto hint = plan_forward(like, far);
  if (!hint) {
    return {};
  }
  if (which == Which::input_gradient) {
    return prepared_from<dnnl::convolution_backward_data>(plan_input_gradient(d, far, hint), d,
                                                          names);
  }
  return prepared_from<dnnl::convolution_backward_weights>(plan_weight_gradient(d, far, hint), d,
                                                           names);
}

onednn::Key key_of(Which which, const ConstView& x, const ConstView& w, const ConstView& y,
                   const ConstView& bias, const ConvSteps& steps, int threads) {
  onednn::Key key{};
  size_t next = 0;
  for (const Shape* shape : {&x.shape, &w.shape}) {
    for (const int64_t size : *shape) {
      key[next++] = size;
    }
  }
  for (const auto* pair : {&steps.stride, &steps.padding, &steps.dilation}) {
    for (const int64_t step : *pair) {
      key[next++] = step;
    }
  }
  for (const int64_t part :
       {steps.groups, static_cast<int64_t>(which), static_cast<int64_t>(x.dtype),
        static_cast<int64_t>(w.dtype), int64_t{bias.data != nullptr}, int64_t{threads}, y.shape[2],
        y.shape[3]}) {
    key[next++] = part;
  }
  return key;
}

bool run(Which which, const ConstView& x, const ConstView& w, const ConstView& y,
         const ConstView& bias, const ConvSteps& steps) {
  thread_local onednn::Cache<onednn::Prepared> cache(primitives_kept);
  const int threads = onednn::available_threads();
  const onednn::ThreadLimit limit(threads);
  onednn::Prepared& prepared = cache.at(key_of(which, x, w, y, bias, steps, threads),
                                        [&] { return prepare(which, x, w, y, bias, steps); });
  if (!prepared) {
    return false;
  }
  const auto& names = argument_names[static_cast<size_t>(which)];
  prepared.bind(names[0], x.data);
  prepared.bind(names[1], w.data);
  prepared.bind(names[2], y.data);
  if (bias.data != nullptr) {
    prepared.bind(DNNL_ARG_BIAS, bias.data);
  }
  prepared.run(onednn::scratch(prepared.scratch_bytes));
  return true;
}

}  // namespace

bool conv_onednn(const ConstView& x, const ConstView& w, const ConstView& bias,
                 const ConvSteps& steps, const View& y) {
  return run(Which::forward, x, w, y, bias, steps);
}

bool conv_input_gradient_onednn(const ConstView& dy, const ConstView& w, const ConvSteps& steps,
                                const View& dx) {
  return run(Which::input_gradient, dx, w, dy, {}, steps);
}

bool conv_weight_gradient_onednn(const ConstView& dy, const ConstView& x, const ConvSteps& steps,
                                 const View& dw) {
  return run(Which::weight_gradient, x, dw, dy, {}, steps);
}

}  // namespace ingot::kernels
