// Slides by key: arrows, Page Up and Down, Home and End; the address keeps the number.
(() => {
  const slides = [...document.querySelectorAll(".attn-slide")];
  const where = document.querySelector(".attn-where");
  let now = 0;
  const tell = (number) => {
    now = number;
    where.textContent = `${now + 1} / ${slides.length}`;
    history.replaceState(null, "", `#${now + 1}`);
  };
  const go = (number) => {
    tell(Math.min(Math.max(number, 0), slides.length - 1));
    slides[now].scrollIntoView({ behavior: "instant" });
  };
  const moves = {
    ArrowRight: () => now + 1, PageDown: () => now + 1, ArrowDown: () => now + 1, " ": () => now + 1,
    ArrowLeft: () => now - 1, PageUp: () => now - 1, ArrowUp: () => now - 1,
    Home: () => 0, End: () => slides.length - 1,
  };
  addEventListener("keydown", (event) => {
    const busy = event.target.closest("input, select, textarea, button, a, [tabindex], .attncourse-moving");
    if (busy || event.ctrlKey || event.metaKey || event.altKey || !(event.key in moves)) return;
    event.preventDefault();
    go(moves[event.key]());
  });
  const watch = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) tell(slides.indexOf(one.target));
  }, { threshold: 0.6 });
  slides.forEach((slide) => watch.observe(slide));
  // What is taller than its slide is shown smaller.
  const fit = () => {
    for (const slide of slides) {
      const shown = slide.querySelector(".attn-shown") ?? slide.querySelector(".attn-sides");
      for (let zoom = 1; zoom >= 0.4; zoom -= 0.05) {
        shown.style.zoom = zoom;
        if (slide.scrollHeight <= innerHeight + 1 || innerWidth <= 700) break;
      }
    }
    go(now);
  };
  addEventListener("resize", fit);
  addEventListener("load", fit);
  go((parseInt(location.hash.slice(1), 10) || 1) - 1);
})();
