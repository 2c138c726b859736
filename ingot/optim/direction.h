#pragma once

#include "ingot/optim/rule.h"

namespace ingot {

// What rules are written with.

// The rounded copy as a kernel takes it: without data where there is none.
View rounded_view(Weight& p);

// b ← μ·b + (1−μ)·scale·g;  returns (1−μ)·scale·g + μ·b with `nesterov`, b's value otherwise.
Tensor momentum_direction(const Tensor& g, Tensor& b, double scale, double momentum, bool nesterov);

// p.full ← keep·p.full − rate·u, and its rounded copy in the same pass. u: dense, of p.full's type
void move_along(Weight& p, const Tensor& u, double rate, double keep);

// s ← β·s + (1−β)·x. Dense, of one shape and type.
void mix_into(Tensor& s, double beta, const Tensor& x);

// Σ x², √Σ x² and √(Σ x² / n) of a dense x, in f64; 0 on the meta device.
double sum_of_squares(const Tensor& x);
double frobenius_norm(const Tensor& x);
double root_mean_square(const Tensor& x);

}  // namespace ingot
