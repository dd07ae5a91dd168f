// The gallery's cards by words, by space and in an order of the reader's choice; without this script all are shown.
for (const form of document.querySelectorAll(".sift")) {
  const gallery = document.querySelector(".gallery"), cards = [...gallery.children];
  const [words, space, order] = ["words", "space", "order"].map((name) => form.elements[name]);
  const number = (card, key) => card.dataset[key] === "" ? Infinity : Number(card.dataset[key]);
  const before = {
    given: (a, b) => cards.indexOf(a) - cards.indexOf(b),
    name: (a, b) => a.dataset.name.localeCompare(b.dataset.name),
    year: (a, b) => number(b, "year") - number(a, "year"),
    error: (a, b) => number(a, "error") - number(b, "error"),
    parameters: (a, b) => number(a, "parameters") - number(b, "parameters"),
  };
  const sift = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    cards.forEach((card) => {
      const text = card.textContent.toLowerCase();
      card.hidden = !((!space.value || card.dataset.space === space.value) && wanted.every((word) => text.includes(word)));
    });
    // Infinity − Infinity is not a number: cells without one stay in their order, at the end.
    gallery.append(...[...cards].sort((a, b) => before[order.value](a, b) || 0));
    form.querySelector("output").textContent = `${cards.filter((card) => !card.hidden).length} of ${cards.length} cells`;
  };
  form.hidden = false;
  form.addEventListener("input", sift);
  form.addEventListener("submit", (event) => event.preventDefault());
  sift();
}
