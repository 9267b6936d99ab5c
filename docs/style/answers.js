"use strict";
/* Shows answers above the results of a search: the entry of a name, the page of a topic, the class of an error.
   The build writes ANSWERS into answers_data.js:
     names     [name, what it is, address], the best kinds first
     topics    [phrase, title, address]
     messages  [text of an error without what varies, its class, address] */

const MOST_ANSWERS = 8;
const NOISE = /\b(the|a|an|how|to|do|i|is|what|in|of|for|layer|layers|function|class|operator|op|api|error)\b/g;

function wordsOf(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}_.]+/gu) || [];
}

/* Names that equal the query, or end with it after a dot. Functions and classes come before the operators that they
   append, and names in the same case before others. */
function namesLike(query) {
  const bare = query.replace(/\(.*$/, "").replace(/^(paddle|anabranch)\./, "");
  const lower = bare.toLowerCase();
  const found = ANSWERS.names.filter(([name]) => {
    const other = name.toLowerCase();
    return lower && (other === lower || other.endsWith("." + lower));
  });
  const rank = ([name, kind]) => (kind === "operator" ? 2 : 0) + !(name === bare || name.endsWith("." + bare));
  return found.sort((a, b) => rank(a) - rank(b));
}

function topicsIn(query) {
  const asked = " " + wordsOf(query).join(" ") + " ";
  return ANSWERS.topics.filter(([phrase]) => asked.includes(" " + wordsOf(phrase).join(" ") + " "))
    .sort((a, b) => b[0].length - a[0].length);
}

/* The length of the longest common subsequence of two lists of words. */
function commonWords(some, others) {
  let row = new Array(others.length + 1).fill(0);
  for (const word of some) {
    const next = [0];
    others.forEach((other, i) => next.push(word === other ? row[i] + 1 : Math.max(row[i + 1], next[i])));
    row = next;
  }
  return row[others.length];
}

/* Errors whose fixed words are in the query, in their order: seven of ten of them, and at least three. */
function messagesLike(query) {
  const asked = wordsOf(query);
  if (asked.length < 3) return [];
  const scored = ANSWERS.messages.map(([text, kind, address]) => {
    const words = wordsOf(text), common = commonWords(words, asked);
    return [common >= 3 && common >= 0.7 * words.length ? common + common / words.length : 0, text, kind, address];
  });
  const best = scored.filter(([score]) => score).sort((a, b) => b[0] - a[0]);
  return best.map(([, text, kind, address]) => [kind + ": " + text, "error", address]);
}

function answersTo(query) {
  const text = query.trim().replace(/\s+/g, " ");
  const bare = text.toLowerCase().replace(NOISE, " ").trim();
  let names = namesLike(text);
  if (!names.length) names = namesLike(bare);
  if (!names.length) names = namesLike(bare.replace(/[ -]+/g, "_"));  // cross entropy
  const topics = topicsIn(text).map(([, title, address]) => [title, "page", address]);
  // Pages about a task come before definitions, and before methods that happen to have the name of a topic.
  const last = new Set(text.includes(".") ? ["term"] : ["term", "method", "attribute"]);
  const all = [...names.filter(([, what]) => !last.has(what)), ...topics, ...names.filter(([, what]) => last.has(what)),
               ...messagesLike(text)];
  const seen = new Set();
  return all.filter(([, , address]) => !seen.has(address) && seen.add(address)).slice(0, MOST_ANSWERS);
}

document.addEventListener("DOMContentLoaded", () => {
  const query = new URLSearchParams(location.search).get("q");
  const results = document.getElementById("search-results");
  if (!query || !results) return;
  const list = document.createElement("ul");
  list.className = "answers";
  for (const [title, kind, address] of answersTo(query)) {
    const link = Object.assign(document.createElement("a"), {href: address, textContent: title});
    const item = document.createElement("li");
    item.append(link, " ", Object.assign(document.createElement("span"), {textContent: kind}));
    list.append(item);
  }
  if (list.children.length) results.before(list);
});
