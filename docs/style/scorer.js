"use strict";
/* How results of the search are ordered: Sphinx's own points, and a lead for the pages that answer a question. */
const answers = page => page.startsWith("do/") && page !== "do/index";
const lists = ["changelog", "differences", "classes", "operators", "absent", "coverage"];
var Scorer = {
  score: ([page, , , , points]) => points + (answers(page) ? 20 : lists.includes(page) ? -10 : 0),
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
