#include "ingot/quant/coded_weights.h"

#include <utility>

#include "ingot/autograd/record.h"
#include "ingot/base/error.h"
#include "ingot/kernels/cpu/parallel.h"
#include "ingot/ops/int8_linear.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::quant {
namespace {

// Rows that a function fills in f32.
class FilledRows : public CodedWeight {
 public:
  FilledRows(int64_t rows, int64_t columns, int64_t bytes, Device device, ReadRows fill)
      : rows_(rows), columns_(columns), bytes_(bytes), device_(device), fill_(std::move(fill)) {}

  int64_t rows() const override { return rows_; }
  int64_t columns() const override { return columns_; }
  int64_t bytes() const override { return bytes_; }
  Device device() const override { return device_; }
  Tensor decoded(int64_t begin, int64_t end, DType dtype) const override {
    Tensor values = empty({end - begin, columns_}, DType::f32, device_);
    if (device_.kind != DeviceKind::meta) {
      fill_(begin, end, values.mutable_values<float>());
    }
    return converted(values, dtype);
  }

 private:
  int64_t rows_, columns_, bytes_;
  Device device_;
  ReadRows fill_;
};

void check_matrix(const char* what, const Tensor& weight) {
  check(weight.rank() == 2 && is_float(weight.dtype()), ErrorKind::shape, what,
        ": takes a matrix [Out, In] of floating-point numbers: got ", weight.shape(), " ",
        weight.dtype());
}

}  // namespace

std::shared_ptr<const CodedWeight> read_weight(int64_t rows, int64_t columns, int64_t bytes,
                                               Device device, ReadRows read) {
  return std::make_shared<FilledRows>(rows, columns, bytes, device, std::move(read));
}

std::shared_ptr<const CodedWeight> nf4_weight(const Tensor& weight, int64_t block,
                                              ScaleStorage scales) {
  check_matrix("nf4_weight", weight);
  const int64_t columns = weight.size(1);
  const Tensor values = dense(converted(detach(weight), DType::f32));
  const PurposeScope scope(Purpose::parameters);
  const auto codes = std::make_shared<const Nf4Codes>(nf4_codes(values, block, scales));
  return read_weight(weight.size(0), columns, codes->bytes(), weight.device(),
                     [codes, columns](int64_t begin, int64_t end, std::span<float> out) {
                       const auto width = static_cast<size_t>(columns);
                       kernels::parallel_for(end - begin, 16, [&](int64_t first, int64_t last) {
                         nf4_decode(*codes, (begin + first) * columns,
                                    out.subspan(static_cast<size_t>(first) * width,
                                                static_cast<size_t>(last - first) * width));
                       });
                     });
}

std::shared_ptr<const CodedWeight> int8_rows(const Tensor& weight) {
  check_matrix("int8_rows", weight);
  return coded_rows(int8_weight(weight));
}

}  // namespace ingot::quant
