#include "ingot/train/recheck.h"

#include <bit>

#include "ingot/autograd/record.h"
#include "ingot/base/hash.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

constexpr const char* advice =
    "; memory or a processor of this machine is at fault: resume from the newest checkpoint on "
    "another one";

std::string hash_of(const Tensor& x) {
  const Tensor whole = dense(x);
  return hash_hex(std::span(static_cast<const std::byte*>(whole.view().data),
                            static_cast<size_t>(whole.bytes())));
}

// Parameters, then masters and slots.
NamedHashes hashes_of(const Optimizer& optimizer) {
  NamedHashes out;
  for (const TensorDict& part : {optimizer.parameters(), optimizer.state()}) {
    for (const auto& [name, x] : part) {
      out.emplace_back(name, hash_of(x));
    }
  }
  return out;
}

}  // namespace

NamedHashes gradient_hashes(const TensorDict& parameters) {
  NamedHashes out;
  for (const auto& [name, p] : parameters) {
    if (const Tensor& g = grad(p); g.defined() && g.device().kind != DeviceKind::meta) {
      out.emplace_back(name, hash_of(g));
    }
  }
  return out;
}

void check_recomputed(int64_t step, double first_loss, double second_loss, const NamedHashes& first,
                      const NamedHashes& second) {
  check(first.size() == second.size(), ErrorKind::internal, "step ", step, ": ", first.size(),
        " gradients, computed again ", second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    check(first[i] == second[i], ErrorKind::numeric, "step ", step,
          ": computed twice, the gradient "
          "of ",
          first[i].first, " differs: its hash is ", first[i].second, ", then ", second[i].second,
          advice);
  }
  check(std::bit_cast<uint64_t>(first_loss) == std::bit_cast<uint64_t>(second_loss),
        ErrorKind::numeric, "step ", step, ": computed twice, the loss differs: it is ", first_loss,
        ", then ", second_loss, advice);
}

Seal::Seal(int64_t step, const Optimizer& optimizer) : step_(step), hashes_(hashes_of(optimizer)) {}

void Seal::check_unbroken(const Optimizer& optimizer) const {
  const NamedHashes now = hashes_of(optimizer);
  for (size_t i = 0; i < now.size(); ++i) {
    check(now[i] == hashes_[i], ErrorKind::numeric, "step ", step_ + 1, ": ", now[i].first,
          " is not what the update of step ", step_, " left: its hash is ", now[i].second, ", was ",
          hashes_[i].second, advice);
  }
}

}  // namespace ingot
