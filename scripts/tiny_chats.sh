#!/usr/bin/env bash
# Writes conversations for recipes/tiny-sft.toml: facts about animals, each asked in many ways, and answers of one sentence.
#   scripts/tiny_chats.sh > build/demo/chats.jsonl
set -euo pipefail

awk '
function say(question, answer) {
  printf "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}, {\"role\": \"assistant\", \"content\": \"%s\"}]}\n", question, answer
}
BEGIN {
  n = split("cow:moo:4:calf dog:bark:4:pup cat:mew:4:kitten lamb:bleat:4:lamb duck:quack:2:duckling hen:cluck:2:chick owl:hoot:2:owlet " \
            "lion:roar:4:cub horse:neigh:4:foal goat:bleat:4:kid pig:grunt:4:piglet crow:caw:2:chick frog:croak:4:tadpole bee:buzz:6:larva " \
            "snake:hiss:0:hatchling wolf:howl:4:cub mouse:squeak:4:pup dove:coo:2:chick goose:honk:2:gosling bear:growl:4:cub", animals, " ")
  said = split("What does a %s say?|What sound does a %s make?|Tell me the sound of a %s.|How does a %s sound?|Which sound comes from a %s?|" \
               "I hear a %s. What does it say?|Say what a %s says.|A %s, what does it say?", ask, "|")
  legs = split("How many legs has a %s?|Count the legs of a %s.|A %s has how many legs?|Tell me how many legs a %s has.|" \
               "On how many legs does a %s stand?|The legs of a %s, how many are they?", count, "|")
  young = split("What is the young of a %s called?|Name the young of a %s.|What do men call the child of a %s?|" \
                "A young %s, what is its name?|Tell me the name of the young of a %s.", name, "|")
  split("no,one,two,three,four,five,six", number, ",")
  for (i = 1; i <= n; ++i) {
    split(animals[i], fact, ":")
    for (q = 1; q <= said; ++q) say(sprintf(ask[q], fact[1]), "A " fact[1] " says " fact[2] ".")
    for (q = 1; q <= legs; ++q) say(sprintf(count[q], fact[1]), "It has " number[fact[3] + 1] " legs.")
    for (q = 1; q <= young; ++q) say(sprintf(name[q], fact[1]), "It is called a " fact[4] ".")
  }
}'
