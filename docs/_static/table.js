// Tables with class "sortable": a click on a header sorts, a text and a choice per named column filter.
(function () {
  "use strict";

  function value(row, column) {
    const cell = row.cells[column];
    return cell.dataset.value !== undefined ? cell.dataset.value : cell.textContent.trim();
  }

  function compare(a, b) {
    const x = parseFloat(a), y = parseFloat(b);
    if (a === "" || b === "") return (a === "") - (b === "");
    if (!isNaN(x) && !isNaN(y) && isFinite(a) && isFinite(b)) return x - y;
    return a.localeCompare(b, "en", { numeric: true });
  }

  function sortable(table) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.addEventListener("click", function () {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = Array.from(body.rows).sort((a, b) => compare(value(a, column), value(b, column)));
        body.append(...(down ? rows.reverse() : rows));
      });
    });
    return heads.map((head) => head.textContent.trim());
  }

  function filtered(wrapper, table, names) {
    const tools = document.createElement("div");
    tools.className = "tools";
    const text = document.createElement("input");
    text.type = "search";
    text.placeholder = "part of a name";
    text.setAttribute("aria-label", "part of a name");
    tools.append(text);
    const choices = (wrapper.dataset.filters || "").split(",").filter(Boolean).map(function (name) {
      const column = names.indexOf(name);
      const select = document.createElement("select");
      select.setAttribute("aria-label", name);
      const found = new Set(Array.from(table.tBodies[0].rows, (row) => value(row, column)));
      select.append(new Option("any " + name, ""));
      Array.from(found).sort().forEach((each) => select.append(new Option(each, each)));
      tools.append(select);
      return { column: column, select: select };
    });
    const count = document.createElement("span");
    count.setAttribute("aria-live", "polite");
    tools.append(count);
    function update() {
      const part = text.value.trim().toLowerCase();
      let shown = 0;
      Array.from(table.tBodies[0].rows).forEach(function (row) {
        const keep = (!part || row.textContent.toLowerCase().includes(part)) &&
          choices.every((each) => !each.select.value || value(row, each.column) === each.select.value);
        row.hidden = !keep;
        shown += keep ? 1 : 0;
      });
      count.textContent = shown + " of " + table.tBodies[0].rows.length;
    }
    tools.addEventListener("input", update);
    wrapper.before(tools);
    update();
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("table.sortable").forEach(function (table) {
      const wrapper = table.closest("[data-filters]");
      const names = sortable(table);
      if (wrapper) filtered(wrapper, table, names);
    });
  });
})();
