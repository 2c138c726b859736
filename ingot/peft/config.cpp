#include "ingot/peft/config.h"

#include "ingot/base/error.h"

namespace ingot::peft {

void check_peft(const PeftConfig& c) {
  check(c.on() || c.base == "as_is", ErrorKind::config, "peft.base: \"", c.base,
        "\" keeps frozen weights in few bits, but peft.kind is empty, so all weights are trained; "
        "set peft.kind");
  check(c.on() || c.from.empty(), ErrorKind::config,
        "peft.from: names an adapter, but peft.kind is empty; set peft.kind to the adapter's");
  check(c.init == "zero" || c.kind == "lora", ErrorKind::config, "peft.init: \"", c.init,
        "\" is a start of lora: peft.kind is \"", c.kind, "\"");
  check(c.init != "loftq" || c.base == "nf4", ErrorKind::config,
        "peft.init: loftq fits what NF4 loses: peft.base is \"", c.base, "\"; set it to \"nf4\"");
  check(c.init != "pissa" || c.base == "as_is" || c.base == "nf4", ErrorKind::config,
        "peft.init: pissa changes the frozen weight, which peft.base = \"", c.base,
        "\" does not let it");
  check(c.init == "zero" || c.from.empty(), ErrorKind::config,
        "peft.init: the adapter of peft.from has values already: init is \"", c.init, "\"");
}

}  // namespace ingot::peft
