#include "ingot/cli/serve_connection.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace ingot {
namespace {

void address_of(const sockaddr_storage& address, std::string& ip, int& port) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    port = ntohs(v6.sin6_port);
  }
  ip = text;
}

}  // namespace

Connection::Connection(socket_t socket, const Limits& limits) : socket_(socket), limits_(limits) {
  begin();
}

Connection*& Connection::current() {
  thread_local Connection* own = nullptr;
  return own;
}

void Connection::begin() {
  deadline_ = std::chrono::steady_clock::now() + limits_.request;
  bytes_ = ahead_end_ - ahead_begin_;
}

bool Connection::wait(short events, std::chrono::milliseconds most) const {
  const auto end = std::chrono::steady_clock::now() + most;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd one{socket_, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) {
      return ready > 0;
    }
  }
}

bool Connection::alive() const {
  if (!wait(POLLIN, std::chrono::milliseconds(0))) {
    return true;  // nothing to read: no end either
  }
  char byte = 0;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

bool Connection::readable_within(std::chrono::milliseconds most) const {
  return ahead_begin_ < ahead_end_ || wait(POLLIN, most);
}

bool Connection::is_readable() const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline_ - std::chrono::steady_clock::now());
  return left.count() > 0 && readable_within(left);
}

ssize_t Connection::read(char* to, size_t size) {
  if (bytes_ >= limits_.request_bytes || !is_readable()) {
    ends_ = true;  // in the middle of a request: there is no next one
    return -1;
  }
  if (ahead_begin_ == ahead_end_ && size < ahead_.size()) {
    const ssize_t count = receive(ahead_.data(), ahead_.size());
    if (count <= 0) {
      return count;
    }
    ahead_begin_ = 0;
    ahead_end_ = static_cast<size_t>(count);
  }
  if (ahead_begin_ == ahead_end_) {
    return receive(to, size);
  }
  const size_t count = std::min(size, ahead_end_ - ahead_begin_);
  std::copy_n(ahead_.data() + ahead_begin_, count, to);
  ahead_begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::receive(char* to, size_t size) {
  ssize_t count = -1;
  do {
    count = ::recv(socket_, to, size, 0);
  } while (count < 0 && errno == EINTR);
  bytes_ += static_cast<size_t>(std::max<ssize_t>(count, 0));
  return count;
}

// All of it, as long as the client goes on taking some.
ssize_t Connection::write(const char* from, size_t size) {
  size_t done = 0;
  while (done < size) {
    if (!wait(POLLOUT, limits_.write)) {
      return -1;
    }
    const ssize_t count = ::send(socket_, from + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
      return -1;
    }
    done += static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
  return static_cast<ssize_t>(size);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    address_of(address, ip, port);
  }
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    address_of(address, ip, port);
  }
}

}  // namespace ingot
