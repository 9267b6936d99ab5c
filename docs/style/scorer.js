"use strict";
/* How results of the search are ordered: Sphinx's own points, and a lead for recipes where the query is a question. */
const isQuestion = () => (new URLSearchParams(location.search).get("q") || "").trim().split(/\s+/).length > 2;
const answers = page => page.startsWith("do/") && page !== "do/index";
const lists = ["changelog", "differences", "classes", "layers", "operators", "absent", "coverage"];
var Scorer = {
  score: ([page, , , , points]) =>
    points + (answers(page) && isQuestion() ? 20 : lists.includes(page) ? -10 : 0),
  objNameMatch: 40, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
