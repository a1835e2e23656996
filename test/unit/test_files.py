# Copyright 2026 biped_com_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""What need not last is removed after a while, and nothing else is."""

import os
import time

from biped_com_ros.core.files import KEPT_DAYS, make_temporary_directory, remove_old_temporaries
import pytest

PREFIX = 'biped_com_calibration.'
DAY = 86400.0
OLD = time.time() - (KEPT_DAYS + 1.0) * DAY


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return the directory for temporary files, an empty one."""
    directory = tmp_path / 'temporary'
    directory.mkdir()
    monkeypatch.setattr('tempfile.tempdir', str(directory))
    return directory


def results(prefix=PREFIX):
    """Make the directory of a calibration, with a file in it."""
    directory = make_temporary_directory(prefix)
    (directory / 'biped').mkdir()
    (directory / 'biped' / 'calibrated.urdf').write_text('<robot/>')
    return directory


def age(directory, at=OLD):
    """Set when a directory and all in it were written."""
    for path in (*directory.rglob('*'), directory):
        os.utime(path, (at, at), follow_symlinks=False)
    return directory


def test_only_what_nobody_has_written_to_for_long_is_removed(temporary):
    old, recent = age(results()), age(results(), time.time() - (KEPT_DAYS - 1.0) * DAY)
    used = age(results())
    os.utime(used / 'biped' / 'calibrated.urdf')
    kept = [recent, used, age(results('other.')), age(results(f'{PREFIX}by.hand.'))]
    mine = temporary / f'{PREFIX}mine'
    mine.mkdir()
    kept.append(age(mine))
    remove_old_temporaries(PREFIX)
    assert not old.exists()
    assert sorted(temporary.iterdir()) == sorted(kept)


def test_links_and_what_belongs_to_others_are_left_alone(temporary, tmp_path, monkeypatch):
    elsewhere = tmp_path / 'elsewhere'
    elsewhere.mkdir()
    (elsewhere / 'thesis.tex').write_text('text')
    link = temporary / f'{PREFIX}abcdefgh'
    link.symlink_to(elsewhere)
    inside = results()
    (inside / 'link').symlink_to(elsewhere)
    file = temporary / f'{PREFIX}ijklmnop'
    file.write_text('text')
    for path in (link, file, elsewhere / 'thesis.tex', elsewhere, age(inside)):
        os.utime(path, (OLD, OLD), follow_symlinks=False)
    monkeypatch.setattr('os.getuid', lambda: 12345)
    remove_old_temporaries(PREFIX)
    assert inside.exists()
    monkeypatch.undo()
    monkeypatch.setattr('tempfile.tempdir', str(temporary))
    remove_old_temporaries(PREFIX)
    assert not inside.exists()
    assert link.is_symlink() and file.exists() and (elsewhere / 'thesis.tex').exists()
