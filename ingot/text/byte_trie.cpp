#include "ingot/text/byte_trie.h"

#include <bit>

namespace ingot {

ByteTrie::ByteTrie() {
  first_.fill(nowhere);
  grow();
}

void ByteTrie::grow() {
  std::vector<Edge> old(edges_.empty() ? 64 : 2 * edges_.size(), Edge{0, nowhere});
  old.swap(edges_);
  mask_ = edges_.size() - 1;
  shift_ = 64 - std::countr_zero(edges_.size());
  for (const Edge& edge : old) {
    if (edge.key != 0) {
      uint64_t at = slot_of(edge.key);
      while (edges_[at].key != 0) {
        at = (at + 1) & mask_;
      }
      edges_[at] = edge;
    }
  }
}

void ByteTrie::add(std::string_view bytes, TokenId value) {
  Node node = root;
  for (const char byte : bytes) {
    Node next = step(node, byte);
    if (next == nowhere) {
      next = static_cast<Node>(values_.size());
      values_.push_back(no_token);
      if (node == root) {
        first_[static_cast<uint8_t>(byte)] = next;
      } else {
        if (2 * ++count_ > edges_.size()) {
          grow();
        }
        uint64_t at = slot_of(key_of(node, byte));
        while (edges_[at].key != 0) {
          at = (at + 1) & mask_;
        }
        edges_[at] = {key_of(node, byte), next};
      }
    }
    node = next;
  }
  values_[node] = value;
}

ByteTrie::Match ByteTrie::longest(std::string_view text) const {
  Match best;
  Node node = root;
  for (size_t i = 0; i < text.size(); ++i) {
    node = step(node, text[i]);
    if (node == nowhere) {
      break;
    }
    if (values_[node] != no_token) {
      best = {i + 1, values_[node]};
    }
  }
  return best;
}

}  // namespace ingot
