document.querySelectorAll(".table").forEach(function (box) {
  var table = box.querySelector("table"), body = table.tBodies[0], field = box.querySelector("input");
  function fill() {
    var data = box.querySelector("script");
    if (!data) return;
    var found = JSON.parse(data.textContent), part = document.createDocumentFragment();
    var heads = Array.from(table.tHead.rows[0].cells).map(function (th) { return th.textContent; });
    data.remove();
    found.rows.forEach(function (row) {
      var line = document.createElement("tr"), words = [];
      row.forEach(function (cell, k) {
        var each = document.createElement(k ? "td" : "th"), digits = found.digits[k];
        if (typeof cell === "number") { each.className = "n"; each.dataset.v = cell; }
        each.textContent = typeof cell === "number" && digits !== null ? cell.toFixed(digits) : cell;
        if (each.textContent) words.push(heads[k] + ": " + each.textContent);
        line.appendChild(each);
      });
      line.title = words.join("\n");
      part.appendChild(line);
    });
    body.appendChild(part);
  }
  if (box.tagName === "DETAILS") box.addEventListener("toggle", fill); else fill();
  if (field) field.addEventListener("input", function () {
    var words = field.value.toLowerCase().split(/\s+/);
    Array.from(body.rows).forEach(function (row) {
      var text = row.textContent.toLowerCase();
      row.hidden = !words.every(function (word) { return text.includes(word); });
    });
  });
  table.querySelectorAll("thead th").forEach(function (th) {
    th.tabIndex = 0;
    function sort() {
      var k = th.cellIndex, up = th.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
      th.setAttribute("aria-sort", up ? "ascending" : "descending");
      Array.from(body.rows).sort(function (a, b) {
        var x = a.cells[k], y = b.cells[k], d;
        if (!x.textContent || !y.textContent) return !x.textContent - !y.textContent;
        if (x.dataset.v !== undefined && y.dataset.v !== undefined) d = x.dataset.v - y.dataset.v;
        else d = x.textContent.localeCompare(y.textContent, undefined, { numeric: true });
        return up ? d : -d;
      }).forEach(function (row) { body.appendChild(row); });
    }
    th.addEventListener("click", sort);
    th.addEventListener("keydown", function (event) { if (event.key === "Enter") sort(); });
  });
});
