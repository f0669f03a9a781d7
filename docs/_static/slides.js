// Keys: right, down, space and page down go on, left, up and page up back.
(function () {
  "use strict";
  const slides = Array.from(document.querySelectorAll(".slide"));
  const steps = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };
  document.addEventListener("keydown", function (event) {
    const step = steps[event.key];
    if (!step || event.target.closest("summary, a, button, input")) return;
    const at = slides.findIndex((each) => each.getBoundingClientRect().bottom > innerHeight / 2);
    const next = slides[Math.max(0, Math.min(slides.length - 1, at + step))];
    const here = slides[at].getBoundingClientRect();
    // A slide that is longer than the window is read to its end first.
    if ((step > 0 && here.bottom > innerHeight + 2) || (step < 0 && here.top < -2)) return;
    event.preventDefault();
    next.scrollIntoView();
    next.focus({ preventScroll: true });
  });
})();
