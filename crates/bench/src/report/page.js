"use strict";
for (const button of document.querySelectorAll("[data-sort]")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const table = head.closest("table");
    const place = [...head.parentNode.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => {
      const cell = row.children[place];
      return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
    };
    const order = (a, b) => {
      const [one, two] = [key(a), key(b)];
      if (typeof one !== typeof two) return typeof one === "number" ? -1 : 1;
      const found = typeof one === "number" ? one - two : one.localeCompare(two, "en", { numeric: true });
      return down ? -found : found;
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(order));
  });
}
for (const button of document.querySelectorAll("[data-save]")) {
  button.addEventListener("click", () => {
    const text = button.closest("details").querySelector("pre").textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = button.dataset.save;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
