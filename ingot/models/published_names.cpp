#include "ingot/models/published_names.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// `shape` with other sizes in the place of its first.
Shape with_first(const Shape& shape, std::initializer_list<int64_t> sizes) {
  Shape out(sizes);
  for (int64_t i = 1; i < shape.rank(); ++i) {
    out.push_back(shape[i]);
  }
  return out;
}

// The shape that `pair` has in the file.
Shape published_shape(const NamePair& pair, const TensorDict& shapes) {
  Shape joined = shapes.at(pair.ours.front()).shape();
  for (size_t i = 1; i < pair.ours.size(); ++i) {
    joined[0] += shapes.at(pair.ours[i]).size(0);
  }
  if (pair.stored == Stored::transposed) {
    std::swap(joined[0], joined[1]);
  }
  return joined;
}

// Rows that alternate between the parts, put part after part.
Tensor in_order(const Tensor& joined, const NamePair& pair, const TensorDict& shapes) {
  if (pair.alternating == 1) {
    return joined;
  }
  const auto turns = pair.alternating;
  const Shape turned = with_first(joined.shape(), {turns, joined.size(0) / turns});
  const Tensor by_turn = reshaped(dense(joined), turned);
  TensorList parts;
  int64_t begin = 0;
  for (const std::string& name : pair.ours) {
    const Shape& shape = shapes.at(name).shape();
    const int64_t end = begin + shape[0] / turns;
    parts.push_back(reshape(sliced(by_turn, 1, begin, end), shape));
    begin = end;
  }
  return concat(parts, int64_t{0});
}

// The reverse, of the parts one after the other.
Tensor alternating(const TensorList& parts, int64_t turns) {
  TensorList by_turn;
  for (const Tensor& part : parts) {
    by_turn.push_back(reshape(part, with_first(part.shape(), {turns, part.size(0) / turns})));
  }
  const Tensor joined = concat(by_turn, int64_t{1});
  Shape flat = parts.front().shape();
  flat[0] = joined.size(0) * joined.size(1);
  return reshape(joined, flat);
}

void take_apart(const NamePair& pair, const Tensor& stored, const TensorDict& shapes,
                TensorDict& out) {
  const Tensor joined =
      in_order(pair.stored == Stored::transposed ? transposed(stored, 0, 1) : stored, pair, shapes);
  if (pair.ours.size() == 1) {
    out.add(pair.ours.front(), joined);
    return;
  }
  int64_t begin = 0;
  for (const std::string& name : pair.ours) {
    const int64_t end = begin + shapes.at(name).size(0);
    out.add(name, sliced(joined, 0, begin, end));
    begin = end;
  }
}

bool same_values(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) {
    return false;
  }
  const Tensor x = dense(a);
  const Tensor y = dense(b);
  return std::memcmp(x.view().data, y.view().data, static_cast<size_t>(x.bytes())) == 0;
}

bool is_ignored(const NameMap& map, const std::string& name) {
  return std::any_of(map.ignored.begin(), map.ignored.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

}  // namespace

TensorDict from_published(const NameMap& map, const TensorDict& published,
                          const TensorDict& shapes) {
  TensorDict out;
  std::string problems;
  std::unordered_set<std::string> used;
  for (const NamePair& pair : map.pairs) {
    used.insert(pair.theirs);
    const Shape wanted = published_shape(pair, shapes);
    if (!published.contains(pair.theirs)) {
      problems += concat("\n  missing: ", pair.theirs, " ", wanted);
    } else if (published.at(pair.theirs).shape() != wanted) {
      problems += concat("\n  shape: ", pair.theirs, " is ", published.at(pair.theirs).shape(),
                         ", the configuration says ", wanted);
    } else {
      take_apart(pair, published.at(pair.theirs), shapes, out);
    }
  }
  const auto differs = [&](const NamePair& pair) {
    used.insert(pair.theirs);
    return published.contains(pair.theirs) && out.contains(pair.ours.front()) &&
           !same_values(published.at(pair.theirs), out.at(pair.ours.front()));
  };
  for (const NamePair& pair : map.repeated) {
    if (differs(pair)) {
      problems += concat("\n  differs: ", pair.theirs, " is not the tensor it repeats, which is ",
                         pair.ours.front(), " here");
    }
  }
  for (const NamePair& pair : map.tied) {
    if (differs(pair)) {
      problems += concat("\n  differs: ", pair.theirs, " ", published.at(pair.theirs).shape(),
                         " is not the embedding that the configuration ties it to; where it was "
                         "trained by itself, set tie_word_embeddings to false");
    }
  }
  for (const auto& [name, tensor] : published) {
    if (!used.contains(name) && !is_ignored(map, name)) {
      problems += concat("\n  unexpected: ", name, " ", tensor.shape());
    }
  }
  check(problems.empty(), ErrorKind::format,
        "model: the tensors do not fit the configuration:", problems);
  return out;
}

TensorDict to_published(const NameMap& map, const TensorDict& ours) {
  TensorDict out;
  for (const NamePair& pair : map.pairs) {
    TensorList parts;
    for (const std::string& name : pair.ours) {
      parts.push_back(ours.at(name));
    }
    const Tensor joined = parts.size() == 1 ? parts.front() : alternating(parts, pair.alternating);
    out.add(pair.theirs,
            pair.stored == Stored::transposed ? copy_of(transposed(joined, 0, 1)) : joined);
  }
  for (const NamePair& pair : map.repeated) {
    out.add(pair.theirs, ours.at(pair.ours.front()));
  }
  return out;
}

}  // namespace ingot
