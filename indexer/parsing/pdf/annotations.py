"""What was written onto a PDF's pages after they were made: values of form fields, text boxes and comments.

None of it is in the page's content. What a reader does not see is left out: hidden annotations, passwords, push
buttons.
"""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import pypdfium2.raw as pdfium
from pypdfium2 import PdfPage

from indexer.parsing.pdf.characters import Box

MAX_ANNOTATIONS = 5_000  # of a page

_UNSEEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD = 1 << 13  # flag of a text field (PDF 1.7, table 228)
_WITHOUT_TEXT = (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP)  # a popup shows its parent's text
_BUTTONS = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_CHOICES = (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX)
_SILENT = (pdfium.FPDF_FORMFIELD_PUSHBUTTON, pdfium.FPDF_FORMFIELD_SIGNATURE)


def annotations(page: PdfPage) -> Iterator[tuple[str, Box, bool]]:
    """(text, box, whether it is a comment on the page rather than a part of it) of each annotation with text."""
    box = pdfium.FS_RECTF()
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        text = ""
        if kind == pdfium.FPDF_ANNOT_WIDGET:
            text = _value(annotation, page.formenv)
        elif kind not in _WITHOUT_TEXT:
            text = _string(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")
        is_seen = not pdfium.FPDFAnnot_GetFlags(annotation) & _UNSEEN
        if is_seen and text.strip() and pdfium.FPDFAnnot_GetRect(annotation, ctypes.byref(box)):
            is_comment = kind not in (pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_FREETEXT)
            yield text, (box.left, box.bottom, box.right, box.top), is_comment
        pdfium.FPDFPage_CloseAnnot(annotation)


def _value(annotation: Any, form: Any) -> str:
    """A field's value as it is shown; of a button its name and state, such as `insured: Yes`."""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation) if form else -1
    if kind < 0:  # the document does not list it among its fields
        return _string(pdfium.FPDFAnnot_GetStringValue, annotation, b"V")
    if kind in _BUTTONS:
        return _state(annotation, form, is_radio=kind == pdfium.FPDF_FORMFIELD_RADIOBUTTON)
    if kind in _SILENT:
        return ""
    if kind in _CHOICES:
        options = range(min(pdfium.FPDFAnnot_GetOptionCount(form, annotation), MAX_ANNOTATIONS))
        chosen = (option for option in options if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, option))
        labels = [_string(pdfium.FPDFAnnot_GetOptionLabel, form, annotation, option) for option in chosen]
        if labels:
            return ", ".join(labels)
    elif pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
        return ""
    return _string(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation)


def _state(annotation: Any, form: Any, *, is_radio: bool) -> str:
    """Of radio buttons, only the chosen one has a text."""
    is_on = pdfium.FPDFAnnot_IsChecked(form, annotation)
    if is_radio and not is_on:
        return ""
    name = _string(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    name = name or _string(pdfium.FPDFAnnot_GetFormFieldName, form, annotation).rpartition(".")[2].partition("[")[0]
    state = _string(pdfium.FPDFAnnot_GetFormFieldExportValue, form, annotation) if is_on else ""
    return f"{name}: {state or ('On' if is_on else 'Off')}"


def _string(read: Callable[..., int], *arguments: Any) -> str:
    """What a function of PDFium writes into a buffer as UTF-16."""
    length = read(*arguments, None, 0)
    if length <= 2:
        return ""
    buffer = ctypes.create_string_buffer(length)
    read(*arguments, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), length)
    return buffer.raw[: length - 2].decode("utf-16-le", "replace")
