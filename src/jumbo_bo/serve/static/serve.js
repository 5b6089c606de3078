"use strict";
// The page works without this file. It keeps an open page up to date, and never throws away what somebody is typing.
(() => {
  const EVERY = 3000; // milliseconds; a look costs the server 0.1 s in a database with 100 trials
  const body = document.body.dataset;
  const changed = document.getElementById("changed");
  const working = document.getElementById("working");
  const frame = document.getElementById("report");
  const follows = "report" in body; // the page of the report
  let leaving = false;

  const typing = () => {
    const fields = [...document.querySelectorAll("main input:not([type=hidden]), header input:not([type=hidden])")];
    return fields.some((f) => f.value !== f.defaultValue || f === document.activeElement)
      || !!document.querySelector("details[open]") || !!document.querySelector(".lost");
  };

  const show = (element, text) => { element.hidden = !text; if (element.textContent !== text) element.textContent = text; };

  const look = async () => {
    if (document.hidden || leaving) return;
    let now;
    try {
      const answer = await fetch(body.pulse + (follows ? "?report=1" : ""), { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      now = await answer.json();
    } catch {
      if (!leaving) show(working, "`jumbo serve` does not answer. Has it been stopped? What you type here cannot be stored until it is back.");
      return;
    }
    if (leaving) return;
    const failed = now.problem && now.problem !== body.problem ? `The last suggestion was not made: ${now.problem}` : "";
    show(working, now.working || failed);
    if (follows) {
      if (now.report && now.report !== body.report) {
        body.report = now.report;
        if (frame) frame.src = frame.src; else location.reload();
      }
    } else if (now.study !== body.study || now.problem !== body.problem) {
      if (typing()) changed.hidden = now.study === body.study;
      else { leaving = true; location.reload(); }
    }
  };
  setInterval(look, EVERY);
  document.addEventListener("visibilitychange", look);

  // A second click on a button sends nothing.
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "1";
    leaving = true;
  });
  addEventListener("pageshow", () => {
    leaving = false;
    for (const form of document.forms) delete form.dataset.sent;
  });

  const print = document.getElementById("print");
  if (print) {
    print.hidden = false;
    print.addEventListener("click", () => window.print());
  }
})();
