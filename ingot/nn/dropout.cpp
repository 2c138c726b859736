#include "ingot/nn/dropout.h"

#include "ingot/ops/dropout.h"

namespace ingot::nn {
namespace {

class SiteNamer : public Visitor {
 protected:
  void on_parameter(const std::string& /*path*/, Tensor& /*parameter*/, Role /*role*/) override {}
  void on_module(const std::string& path, Module& module) override {
    if (auto* dropout = dynamic_cast<Dropout*>(&module)) {
      dropout->set_site(site_named(path));
    }
  }
};

}  // namespace

Tensor Dropout::operator()(const Tensor& x, const Randomness& randomness) const {
  return p_ > 0 && randomness.training ? dropout(x, p_, randomness.key(site_)) : x;
}

void name_dropout_sites(Module& root) {
  SiteNamer namer;
  root.visit(namer);
}

}  // namespace ingot::nn
