#include "ingot/models/gguf_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "ingot/base/error.h"
#include "ingot/quant/ggml_codec.h"

namespace ingot {
namespace {

// Row i of a head of C rows in the file is row half_split(i, C) of ours.
int64_t half_split(int64_t i, int64_t head_rows) { return i % 2 * (head_rows / 2) + i / 2; }

// How many rows precede those of `ours` in the pair's tensor.
int64_t rows_before(const GgufPair& pair, const std::string& ours, const TensorDict& shapes) {
  int64_t rows = 0;
  for (const std::string& one : pair.ours) {
    if (one == ours) {
      return rows;
    }
    rows += rows_of(shapes.at(one));
  }
  throw Error(ErrorKind::internal, concat("gguf: ", pair.theirs, " does not hold ", ours));
}

void decode_rows(const GgufFile& file, const GgufTensor& tensor, int64_t columns, int64_t begin,
                 int64_t end, std::span<float> out) {
  const int64_t row_bytes = bytes_of(tensor.type, columns);
  const auto bytes = file.bytes(tensor).subspan(static_cast<size_t>(begin * row_bytes),
                                                static_cast<size_t>((end - begin) * row_bytes));
  try {
    quant::decode_values(tensor.type, bytes, out);
  } catch (Error& error) {
    error.within(
        concat("in rows ", begin, " to ", end - 1, " of ", tensor.name, " of ", file.name()));
    throw;
  }
}

// Between a head as the file has it and the rows of ours that it is: a copy, or transposed.
void copy_head(std::span<const float> from, std::span<float> to, int64_t rows, bool transposed) {
  if (!transposed) {
    std::copy(from.begin(), from.end(), to.begin());
    return;
  }
  const auto height = static_cast<size_t>(rows);
  const size_t width = from.size() / height;
  for (size_t i = 0; i < height; ++i) {
    for (size_t j = 0; j < width; ++j) {
      to[j * height + i] = from[i * width + j];
    }
  }
}

// The rows of ours in [begin, end) that this tensor holds; the others are another's.
void read_head_rows(const GgufFile& file, const GgufPair& pair, const TensorDict& shapes,
                    int64_t begin, int64_t end, std::span<float> out) {
  const GgufHeadRows& part = pair.part;
  const auto [rows, columns, together] = gguf_rows(pair, shapes);
  const int64_t width = columns_of(shapes.at(pair.ours.front()));
  std::vector<float> stored(static_cast<size_t>(together * columns));
  std::vector<float> head(stored.size());
  for (int64_t h = begin / part.of; h * part.of < end; ++h) {
    decode_rows(file, file.tensor(pair.theirs), columns, h * together, (h + 1) * together, stored);
    copy_head(stored, head, together, part.transposed);
    const int64_t first = h * part.of + part.from;
    const int64_t from = std::max(begin, first);
    const int64_t to = std::min(end, first + part.rows);
    if (from < to) {
      std::copy_n(head.data() + (from - first) * width, (to - from) * width,
                  out.data() + (from - begin) * width);
    }
  }
}

void make_head_rows(const StoredModel& stored, const GgufPair& pair, int64_t begin, int64_t end,
                    std::span<float> out) {
  const GgufHeadRows& part = pair.part;
  const auto [rows, columns, together] = gguf_rows(pair, stored.shapes);
  const auto size = static_cast<size_t>(together * columns);
  std::vector<float> head(size);
  for (int64_t h = begin / together; h * together < end; ++h) {
    const int64_t first = h * part.of + part.from;
    stored.read(pair.ours.front(), first, first + part.rows, head);
    copy_head(
        head,
        out.subspan(
            static_cast<size_t>(h * together - begin) * size / static_cast<size_t>(together), size),
        part.rows, part.transposed);
  }
}

// Rows of what was lost by adding, where the file keeps it.
void restore_lost(const GgufFile& file, const GgufPair& pair, int64_t first,
                  std::span<float> values) {
  const GgufValue* kept = pair.added == 0 ? nullptr : file.metadata().find(lost_key(pair));
  const auto* array = kept == nullptr ? nullptr : std::get_if<GgufArray>(&kept->value);
  const auto* lost = array == nullptr ? nullptr : std::get_if<std::vector<float>>(&array->values);
  const int64_t all = file.tensor(pair.theirs).shape.elements();
  if (lost == nullptr || static_cast<int64_t>(lost->size()) != all) {
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] += (*lost)[static_cast<size_t>(first) + i];
  }
}

void add_to(std::span<float> values, float added) {
  if (added != 0) {
    for (float& value : values) {
      value += added;
    }
  }
}

}  // namespace

std::string lost_key(const GgufPair& pair) { return "ingot.lost." + pair.theirs; }

std::vector<float> lost_by_adding(const StoredModel& stored, const GgufPair& pair) {
  const auto [rows, columns, together] = gguf_rows(pair, stored.shapes);
  std::vector<float> out(pair.added == 0 ? 0 : static_cast<size_t>(rows * columns));
  if (out.empty()) {
    return {};
  }
  GgufPair plain = pair;
  plain.added = 0;
  make_gguf_rows(stored, plain, 0, rows, out);
  bool any = false;
  for (float& value : out) {
    const float theirs = value + pair.added;
    const float lost = value - (theirs - pair.added);
    value = std::isfinite(lost) ? lost : 0;
    any = any || value != 0;
  }
  return any ? out : std::vector<float>();
}

GgufRows gguf_rows(const GgufPair& pair, const TensorDict& shapes) {
  if (pair.ours.empty()) {
    return {static_cast<int64_t>(pair.values.size()), 1, 1};
  }
  if (const GgufHeadRows& part = pair.part; part.heads > 0) {
    const int64_t columns = columns_of(shapes.at(pair.ours.front()));
    return part.transposed ? GgufRows{part.heads * columns, part.rows, columns}
                           : GgufRows{part.heads * part.rows, columns, part.rows};
  }
  GgufRows out{0, columns_of(shapes.at(pair.ours.front())), 1};
  for (const std::string& one : pair.ours) {
    out.rows += rows_of(shapes.at(one));
  }
  if (pair.interleaved_heads > 0) {
    out.together = out.rows / pair.interleaved_heads;
  }
  return out;
}

Shape gguf_shape(const GgufPair& pair, const TensorDict& shapes) {
  if (pair.ours.empty()) {
    return {static_cast<int64_t>(pair.values.size())};
  }
  if (pair.part.heads > 0) {
    const auto [rows, columns, together] = gguf_rows(pair, shapes);
    return {pair.part.heads, together, columns};
  }
  Shape shape = shapes.at(pair.ours.front()).shape();
  if (pair.stacked) {
    shape.insert(0, static_cast<int64_t>(pair.ours.size()));
  } else {
    shape[0] = gguf_rows(pair, shapes).rows;
  }
  return shape;
}

void check_gguf_tensors(const GgufFile& file, const std::vector<GgufPair>& pairs,
                        const TensorDict& shapes) {
  std::string problems;
  std::unordered_map<std::string_view, const GgufPair*> named;
  for (const GgufPair& pair : pairs) {
    named[pair.theirs] = &pair;
    const Shape wanted = gguf_shape(pair, shapes);
    if (!file.contains(pair.theirs)) {
      problems += concat("\n  missing: ", pair.theirs, " ", wanted);
    } else if (file.tensor(pair.theirs).shape != wanted) {
      problems += concat("\n  shape: ", pair.theirs, " is ", file.tensor(pair.theirs).shape,
                         ", the metadata says ", wanted);
    }
  }
  for (const GgufTensor& tensor : file.tensors()) {
    if (!named.contains(tensor.name)) {
      problems += concat("\n  unexpected: ", tensor.name, " ", tensor.shape);
    }
  }
  check(problems.empty(), ErrorKind::format, file.name(),
        ": the tensors do not fit the metadata:", problems);
}

void read_gguf_rows(const GgufFile& file, const GgufPair& pair, const std::string& ours,
                    const TensorDict& shapes, int64_t begin, int64_t end, std::span<float> out) {
  if (pair.part.heads > 0) {
    read_head_rows(file, pair, shapes, begin, end, out);
    return;
  }
  const GgufTensor& tensor = file.tensor(pair.theirs);
  const auto [rows, columns, together] = gguf_rows(pair, shapes);
  const int64_t first = rows_before(pair, ours, shapes) + begin;
  const int64_t last = first + end - begin;
  if (together == 1) {
    decode_rows(file, tensor, columns, first, last, out);
  } else {  // whole heads, of which the rows asked for are picked
    const int64_t from = first / together * together;
    const int64_t to = (last + together - 1) / together * together;
    std::vector<float> heads(static_cast<size_t>((to - from) * columns));
    decode_rows(file, tensor, columns, from, to, heads);
    for (int64_t row = from; row < to; ++row) {
      const int64_t place = row / together * together + half_split(row % together, together);
      if (place >= first && place < last) {
        std::copy_n(heads.data() + (row - from) * columns, columns,
                    out.data() + (place - first) * columns);
      }
    }
  }
  add_to(out, -pair.added);
  restore_lost(file, pair, first * columns, out);
}

void make_gguf_rows(const StoredModel& stored, const GgufPair& pair, int64_t begin, int64_t end,
                    std::span<float> out) {
  if (pair.ours.empty()) {
    std::copy(pair.values.begin() + begin, pair.values.begin() + end, out.begin());
    return;
  }
  if (pair.part.heads > 0) {
    make_head_rows(stored, pair, begin, end, out);
    return;
  }
  const auto [rows, columns, together] = gguf_rows(pair, stored.shapes);
  std::vector<float> straight;
  std::span<float> target = out;
  if (together > 1) {
    straight.resize(out.size());
    target = straight;
  }
  int64_t before = 0;
  for (const std::string& one : pair.ours) {
    const int64_t size = rows_of(stored.shapes.at(one));
    const int64_t from = std::max(begin, before);
    const int64_t to = std::min(end, before + size);
    if (from < to) {
      stored.read(one, from - before, to - before,
                  target.subspan(static_cast<size_t>((from - begin) * columns),
                                 static_cast<size_t>((to - from) * columns)));
    }
    before += size;
  }
  for (int64_t row = 0; together > 1 && row < end - begin; ++row) {
    const int64_t place = row / together * together + half_split(row % together, together);
    std::copy_n(straight.data() + place * columns, columns, out.data() + row * columns);
  }
  add_to(out, pair.added);
}

}  // namespace ingot
