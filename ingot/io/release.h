#pragma once

#include <cstddef>
#include <span>

namespace ingot {

// Tells the system that these bytes of a mapped file are not needed for now: their pages leave this
// process's resident memory, and come back from the file when touched again. What bounds the memory
// of a program that walks over files larger than it may hold.
void release_pages(std::span<const std::byte> mapped);

}  // namespace ingot
