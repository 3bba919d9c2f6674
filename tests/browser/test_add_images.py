"""From a folder to a dataset with taxonomy and features through the page alone."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.conftest import insist, settle, still
from tests.datasets.test_duplicates import photograph, video
from tests.datasets.test_image_folders import coco_of, hugging_face, picture

HOSTILE = "<img src=x onerror=document.title='owned'>"


def open_page(page, app: str, link: str = "") -> None:
    page.goto(f"{app}/add_images{link}")
    settle(page)


def give_path(page, path: Path | str) -> None:
    field = page.get_by_role("textbox", name="Path of a folder")
    field.fill(str(path))
    field.press("Enter")


def save_as(page, name: str) -> None:
    field = page.get_by_role("textbox", name="Name", exact=True)
    expect(field).to_have_count(1)  # while the page is drawn anew, the old field may be there next to the new one
    field.fill(name)
    field.press("Enter")
    settle(page)
    page.get_by_role("button", name="Save dataset").click()
    page.get_by_text("is saved:").wait_for()


def expect_metric(page, label: str, value: str) -> None:
    box = page.locator('[data-testid="stMetric"]').filter(has_text=label).first
    expect(box.locator('[data-testid="stMetricValue"]')).to_have_text(value)


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    for name in ("dog", "wolf", HOSTILE, 'it\'s "quoted" 🐶'):
        for i in range(3):
            picture(tmp_path / "pets" / name.replace("/", "_") / f"{i}.png", size=40)
    (tmp_path / "pets" / "dog" / "broken.jpg").write_text("not a picture")
    return tmp_path / "pets"


def test_a_folder_becomes_a_dataset_with_taxonomy_and_features(page, app: str, pets: Path) -> None:
    open_page(page, app)
    page.get_by_text("Supported layouts").wait_for()
    give_path(page, pets)
    page.get_by_role("button", name="Save dataset").wait_for()
    settle(page)
    expect_metric(page, "Classes", "4")
    expect_metric(page, "Images", "12")
    page.get_by_text("Skipped 1 unreadable file").wait_for()
    expect(page.locator(".tile")).to_have_count(12)
    save_as(page, "browser_pets")
    expect(page).to_have_url(re.compile("dataset=browser_pets"))
    page.get_by_role("button", name="Extract features").last.click()
    page.get_by_text("Last extraction: 12 images").wait_for()
    page.get_by_text("Available: EfficientNet-Lite0").wait_for()
    page.locator(".st-key-fsviz_siblings").get_by_role("link", name="Images", exact=True).click()
    page.wait_for_url("**/images**")
    settle(page)
    page.locator('.wall .tile[title*="onerror"]').first.wait_for()  # the whole name, on hover
    page.get_by_text("neighbours share its class").first.wait_for()
    near = page.locator(".wall").nth(1).locator(".tile")
    near.nth(3).scroll_into_view_if_needed()
    settle(page)
    image = near.nth(3).get_attribute("data-id")
    near.nth(3).click()  # goes to that neighbour: its own neighbours are shown, itself not among them
    page.wait_for_function(
        "(told) => [...document.querySelectorAll('[data-testid=stHtml]')].some((e) => e.innerText.includes(told))",
        arg=f"image\n{image}",
    )
    expect(page.locator(".wall").nth(1).locator(f'.tile[data-id="{image}"]')).to_have_count(0)
    near.first.wait_for()
    assert page.title() != "owned"


def correct_first(page, word: str) -> None:
    """Chooses another meaning for the first class of the table of meanings."""
    table = page.locator('[data-testid="stDataFrame"]').last
    table.scroll_into_view_if_needed()
    still(table)  # it is drawn on a canvas: nothing in the page tells when it is done
    meaning = page.locator('input[id^="react-select"]')
    # the meaning of the first class, below the header
    insist(lambda: table.dblclick(position={"x": 300, "y": 36 + 18}), meaning, "attached")
    expect(meaning).to_be_focused()
    page.keyboard.type(word)
    page.get_by_role("option", name=word).wait_for()
    page.keyboard.press("Enter")
    meaning.wait_for(state="detached")
    settle(page)
    still(table)


def test_a_meaning_can_be_corrected_in_the_table_and_later(page, app: str, tmp_path: Path) -> None:
    for name in ("crane", "robin"):
        for i in range(2):
            picture(tmp_path / "birds" / name / f"{i}.png")
    open_page(page, app)
    give_path(page, tmp_path / "birds")
    page.get_by_role("button", name="Save dataset").wait_for()
    settle(page)
    correct_first(page, "lifting device")
    table = page.locator('[data-testid="stDataFrame"]').last
    expect(table.locator("td", has_text="lifts and moves heavy objects")).to_have_count(1)  # no longer the bird's gloss
    save_as(page, "browser_cranes")
    page.goto(f"{app}/add_images?dataset=browser_cranes&do=WordNet+senses")
    page.get_by_role("button", name="Save senses").wait_for()
    settle(page)
    expect(table.locator("td", has_text="lifts and moves heavy objects")).to_have_count(1)  # as it was saved
    correct_first(page, "wading bird")
    page.get_by_role("button", name="Save senses").click()
    page.get_by_text("1 sense changed").first.wait_for()
    page.goto(f"{app}/images?dataset=browser_cranes&order=class")
    settle(page)
    page.get_by_text("wading bird").first.wait_for()


def test_copies_are_shown_frames_become_groups_and_of_two_archives_the_evil_one_is_refused(
    page, app: str, tmp_path: Path
) -> None:
    open_page(page, app)
    copies_are_shown_and_folders_of_frames_become_groups(page, tmp_path)
    settle(page)
    an_archive_that_leads_outside_is_refused_and_another_is_saved(page, tmp_path)
    page.goto(f"{app}/images?dataset=browser_birds")
    settle(page)
    page.locator(".tile").nth(5).wait_for()


def an_archive_that_leads_outside_is_refused_and_another_is_saved(page, tmp_path: Path) -> None:
    picture_bytes = io.BytesIO()
    Image.new("RGB", (32, 32), "teal").save(picture_bytes, "PNG")
    with zipfile.ZipFile(tmp_path / "birds.zip", "w") as archive:
        for name in ("robin", "crane"):
            for i in range(3):
                archive.writestr(f"birds/{name}/{i}.png", picture_bytes.getvalue())
    page.get_by_role("radio", name="Upload").click()
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../evil.png", b"x")
    page.locator('input[type="file"]').set_input_files(str(tmp_path / "evil.zip"))
    page.get_by_text("names a file outside its own folder").wait_for()
    settle(page)
    page.locator('[data-testid="stFileChipDeleteBtn"]').click()
    page.get_by_text("names a file outside its own folder").wait_for(state="detached")
    upload_zip(page, coco_of(tmp_path / "coco"))
    page.get_by_text("12 objects of 3 categories in 6 images").wait_for()
    settle(page)
    page.locator('[data-testid="stFileChipDeleteBtn"]').click()
    page.get_by_text("12 objects of 3 categories in 6 images").wait_for(state="detached")
    faces = hugging_face(tmp_path / "faces", "jsonl", ("train", "test"))
    Image.new("RGB", (20_000, 1)).save(faces / "train" / "3.png")
    upload_zip(page, faces)
    page.get_by_text("Read as a Hugging Face image folder").wait_for()
    expect_metric(page, "Images", "7")
    page.get_by_text("Skipped 1 unreadable file.").first.wait_for()
    settle(page)
    page.locator('[data-testid="stFileChipDeleteBtn"]').click()
    page.get_by_text("Read as a Hugging Face image folder").wait_for(state="detached")
    page.locator('input[type="file"]').set_input_files(str(tmp_path / "birds.zip"))
    page.get_by_role("button", name="Save dataset").wait_for()
    settle(page)
    expect_metric(page, "Images", "6")
    save_as(page, "browser_birds")


def upload_zip(page, folder: Path) -> None:
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for path in sorted(folder.rglob("*.*")):
            archive.write(path, path.relative_to(folder))
    page.locator('input[type="file"]').set_input_files(str(folder.with_suffix(".zip")))


def copies_are_shown_and_folders_of_frames_become_groups(page, tmp_path: Path) -> None:
    for i in range(4):
        (tmp_path / "pets" / f"kind{i % 2}").mkdir(parents=True, exist_ok=True)
        photograph(i).save(tmp_path / "pets" / f"kind{i % 2}" / f"{i}.png")
        photograph(i).resize((90, 70)).save(tmp_path / "pets" / f"kind{i % 2}" / f"{i}_small.jpg")
    give_path(page, tmp_path / "pets")
    page.get_by_text("4 groups of duplicates (8 images").first.click()
    page.get_by_text("kind0/0.png = kind0/0_small.jpg").first.wait_for(state="attached")
    expect(page.locator(".tile").nth(8 + 8 - 1)).to_be_attached()  # samples, and the copies side by side
    settle(page)
    for name in ("run", "jump"):
        for v in range(2):
            video(tmp_path / "clips" / name / f"video{v}", 10 * len(name) + v)
    give_path(page, tmp_path / "clips")
    page.get_by_text("like frames of videos").first.click()
    expect_metric(page, "Classes", "4")
    settle(page)
    page.get_by_role("button", name="Group by folder").click()
    page.get_by_text("24 images in 4 groups").first.wait_for()
    expect_metric(page, "Classes", "2")
