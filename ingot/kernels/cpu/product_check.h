#pragma once

#include <vector>

#include "ingot/kernels/cpu/product.h"

namespace ingot::kernels {

// The sums of y's rows before a product that adds to them; empty for one that does not.
std::vector<double> sums_before(const Product& p);
// Throws where a row of y does not have its sum (kernels/product_check.h).
void check_product(const Product& p, const std::vector<double>& before);

}  // namespace ingot::kernels
