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
"""Policies of SROS2, read and checked by the rules of its schema (version 0.2.0)."""

from collections import defaultdict
import re
from xml.etree import ElementTree

#: Direction by tag and attribute of a rule.
DIRECTIONS = {('topics', 'publish'): 'publishes', ('topics', 'subscribe'): 'subscribes',
              ('services', 'reply'): 'serves', ('services', 'request'): 'calls',
              ('actions', 'execute'): 'executes'}
_ATTRIBUTES = {'topics': {'publish', 'subscribe'}, 'services': {'reply', 'request'},
               'actions': {'call', 'execute'}}
_FULL_NAME = re.compile(r'(/[A-Za-z_][A-Za-z0-9_]*)+')


def check_schema(root):
    """Check what policy.xsd of the sros2 package asks for."""
    assert root.tag == 'policy' and root.attrib == {'version': '0.2.0'}
    (enclaves,) = root
    assert enclaves.tag == 'enclaves' and not enclaves.attrib and len(enclaves)
    paths = [enclave.get('path') for enclave in enclaves]
    assert len(set(paths)) == len(paths), 'artifacts are generated per path'
    for enclave in enclaves:
        assert enclave.tag == 'enclave' and enclave.attrib.keys() == {'path'}
        assert re.fullmatch(r'(/\w+)+', enclave.get('path'))
        assert [child.tag for child in enclave] == ['profiles']
        assert not enclave[0].attrib and len(enclave[0])
        for profile in enclave[0]:
            check_profile(profile)


def check_profile(profile):
    """Check the rules of one node."""
    assert profile.tag == 'profile' and profile.attrib.keys() == {'ns', 'node'}
    for rules in profile:
        assert rules.tag in _ATTRIBUTES
        assert rules.attrib and rules.attrib.keys() <= _ATTRIBUTES[rules.tag]
        assert set(rules.attrib.values()) <= {'ALLOW', 'DENY'}
        assert len(rules), 'the schema wants at least one name'
        for name in rules:
            assert name.tag == rules.tag.removesuffix('s') and not name.attrib and not len(name)
            assert _FULL_NAME.fullmatch(name.text), f'no full name: {name.text!r}'


def read_policy(path):
    """Return (direction, name) by enclave and node of a checked file."""
    root = ElementTree.parse(path).getroot()
    check_schema(root)
    found = defaultdict(lambda: defaultdict(set))
    for enclave in root[0]:
        for profile in enclave[0]:
            for rules in profile:
                for attribute, value in rules.attrib.items():
                    assert value == 'ALLOW', 'everything else is denied anyway'
                    found[enclave.get('path')][profile.get('node')] |= {
                        (DIRECTIONS[rules.tag, attribute], name.text) for name in rules}
    return {enclave: dict(nodes) for enclave, nodes in found.items()}
