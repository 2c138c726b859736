#pragma once

#include "ingot/posttrain/distillation.h"
#include "ingot/posttrain/preference_objective.h"

namespace ingot {

class Session;

// The objectives of kinds that learn from answers, over a session's model.
Objective dpo_of(Session& session);
Objective orpo_of(Session& session);
Objective simpo_of(Session& session);
Objective cpo_of(Session& session);
Objective kto_of(Session& session);
Objective reward_of(Session& session);
Objective distillation_of(Session& session);

// A session's model as those objectives see it.
Policy policy_of(Session& session);
// Its reference: the same weights with the adapters off; without adapters, what was computed of the
// weights that training began with.
Reference reference_of(Session& session);

}  // namespace ingot
